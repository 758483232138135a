#include "accrue/tests/ptx/grid.h"

#include "accrue/core/bits.h"
#include "accrue/kernels/simt/limits.h"
#include "accrue/kernels/simt/order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace accrue::ptx {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// A warp and where its lanes stand.
struct WarpState : Warp {
  int index = 0;                               ///< in its block
  std::uint32_t at = 0;                        ///< where the active lanes stand
  std::uint32_t others = 0;                    ///< where the first of those that may run too does
  std::array<std::uint32_t, kLanes> places{};  ///< of lanes that are not active
  std::uint32_t alive = 0, at_barrier = 0, at_meeting = 0;

  void activate(std::uint32_t lanes) {
    active = lanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      mask[static_cast<std::size_t>(lane)] = -static_cast<std::int32_t>(lanes >> lane & 1);
    }
  }
  std::uint32_t& place_of(int lane) { return places[static_cast<std::size_t>(lane)]; }
  std::uint32_t place_of(int lane) const { return places[static_cast<std::size_t>(lane)]; }
  void place(std::uint32_t lanes, std::uint32_t where) {
    for_each_lane(lanes, [&](int lane) { place_of(lane) = where; });
  }
  /// The lanes among `lanes` whose register equals `value`.
  std::uint32_t lanes_with(std::uint32_t lanes, std::uint32_t at_register, std::uint32_t value) {
    std::uint32_t found = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      found |= std::uint32_t{this->lanes<std::uint32_t>(at_register)[lane] == value} << lane;
    }
    return lanes & found;
  }
};

class Machine {
 public:
  Machine(const Kernel& kernel,
          const simt::LaunchShape& shape,
          const std::vector<std::byte>& parameters)
      : kernel_(kernel),
        shape_(shape),
        shared_(kernel.dynamic_shared + shape.dynamic_shared),
        warps_((shape.block.x + kLanes - 1) / kLanes),
        files_(warps_.size() * kernel.file_bytes, std::byte{0xff}),
        memory_{{parameters.data(), parameters.size()}, shared_.data(), {}} {
    const auto add = [&](const SharedArray& array) {
      memory_.arrays.push_back({shared_.data() + array.begin, array.bytes});
    };
    for (const SharedArray& array : kernel.shared) add(array);
    add({kernel.dynamic_shared, shape.dynamic_shared});
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      warps_[w].index = static_cast<int>(w);
      warps_[w].file = files_.data() + w * kernel.file_bytes;
      warps_[w].memory = &memory_;
      for (const Preset& preset : kernel.presets) write(warps_[w], preset);
    }
    for (const Instruction& it : kernel.code) it.seen = {};
  }

  std::int64_t run() {
    const simt::RunOptions& options = simt::run_options();
    std::mt19937_64 dice(options.seed);
    const simt::BlockOrder blocks(shape_.grid, options, dice);
    std::vector<int> order;
    const auto num_warps = static_cast<int>(warps_.size());
    for (std::int64_t turn = 0; turn < blocks.count(); ++turn) {
      block_ = simt::unflatten(blocks[turn], shape_.grid);
      simt::order_threads(order, num_warps, options.schedule, dice);
      start_block();
      do {
        for (const int w : order) run_warp(warps_[static_cast<std::size_t>(w)]);
      } while (pass_barrier());
    }
    return num_run_;
  }

 private:
  void start_block() {
    std::ranges::fill(shared_, std::byte{0xff});
    for (WarpState& warp : warps_) {
      const unsigned threads = std::min(shape_.block.x - kLanes * static_cast<unsigned>(warp.index),
                                        static_cast<unsigned>(kLanes));
      warp.alive = threads == kLanes ? 0xffffffffU : (1U << threads) - 1;
      warp.at_barrier = warp.at_meeting = 0;
      warp.places = {};
      for (const Preset& preset : kernel_.presets) {
        const bool is_of_block =
            preset.source == Source::block_x || preset.source == Source::block_y;
        if (is_of_block) write(warp, preset);
      }
    }
  }

  void write(WarpState& warp, const Preset& preset) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = value_of(preset, warp.index * kLanes + lane);
      if (preset.width == 8) {
        warp.lanes<std::uint64_t>(preset.at)[lane] = value;
      } else {
        warp.lanes<std::uint32_t>(preset.at)[lane] = static_cast<std::uint32_t>(value);
      }
    }
  }

  std::uint64_t value_of(const Preset& preset, int thread) const {
    switch (preset.source) {
      case Source::constant:
        return preset.value;
      case Source::parameters:
        return std::bit_cast<std::uint64_t>(memory_.parameters.begin) + preset.value;
      case Source::thread:
        return static_cast<std::uint64_t>(thread);
      case Source::threads:
        return shape_.block.x;
      case Source::block_x:
        return block_.x;
      case Source::block_y:
        return block_.y;
      case Source::blocks_x:
        return shape_.grid.x;
      case Source::blocks_y:
        return shape_.grid.y;
    }
    return 0;
  }

  /// Runs until every lane has returned or waits at a barrier.
  void run_warp(WarpState& warp) {
    while (choose(warp)) {
      try {
        run_together(warp);
      } catch (const LaneFault& fault) {
        report(warp, fault.lane, warp.at, fault.what);
      }
    }
  }

  /// Activates the lanes that are behind.
  bool choose(WarpState& warp) const {
    const std::uint32_t ready = warp.alive & ~warp.at_barrier & ~warp.at_meeting;
    if (ready == 0) {
      if (warp.at_meeting == 0) return false;
      const int lane = std::countr_zero(warp.at_meeting);
      report(warp,
             lane,
             warp.place_of(lane),
             "waits for lanes that do not come; waiting " + hex(warp.at_meeting, 8));
    }
    std::uint32_t first = kNever, second = kNever, lanes = 0;
    for_each_lane(ready, [&](int lane) {
      const std::uint32_t place = warp.place_of(lane);
      if (place < first) {
        second = std::exchange(first, place);
        lanes = 0;
      } else if (place != first) {
        second = std::min(second, place);
      }
      if (place == first) lanes |= 1U << lane;
    });
    warp.at = first;
    warp.others = second;
    warp.activate(lanes);
    return true;
  }

  /// Runs the active lanes until they part, wait or reach others.
  void run_together(WarpState& warp) {
    do {
      const Instruction& it = kernel_.code.at(warp.at);
      it.has_run = true;
      num_run_ += std::popcount(warp.active);
      const std::uint32_t lanes =
          it.guard == Instruction::kNone
              ? warp.active
              : warp.lanes_with(warp.active, it.guard, it.negates_guard ? 0 : 1);
      if (it.control != Control::none) {
        if (!run_control(warp, it, lanes)) return;
      } else if (lanes == warp.active) {
        it.execute(warp, it);
        ++warp.at;
      } else {
        const std::uint32_t all = warp.active;
        warp.activate(lanes);
        it.execute(warp, it);
        warp.activate(all);
        ++warp.at;
      }
    } while (warp.at < warp.others);
    warp.place(warp.active, warp.at);
  }

  /// Whether the active lanes stay together and have gone on.
  bool run_control(WarpState& warp, const Instruction& it, std::uint32_t lanes) {
    const bool is_taken = it.control == Control::branch && lanes == warp.active;
    if (is_taken || lanes == 0) {
      warp.at = is_taken ? it.target : warp.at + 1;
      return true;
    }
    if (it.control == Control::meeting && lanes == warp.active &&
        warp.lanes_with(0xffffffffU, it.members, lanes) == 0xffffffffU) {
      it.execute(warp, it);
      ++warp.at;
      return true;
    }
    warp.place(warp.active, warp.at + 1);
    if (it.control == Control::branch) warp.place(lanes, it.target);
    if (it.control == Control::exit) warp.alive &= ~lanes;
    if (it.control == Control::barrier) warp.at_barrier |= lanes;
    if (it.control == Control::meeting) {
      warp.place(lanes, warp.at);
      warp.at_meeting |= lanes;
      meet(warp, it);
    }
    return false;
  }

  /// Runs a meeting for each set of lanes that is complete at this place.
  void meet(WarpState& warp, const Instruction& it) const {
    std::uint32_t here = 0;
    for_each_lane(warp.at_meeting,
                  [&](int lane) { here |= std::uint32_t{warp.place_of(lane) == warp.at} << lane; });
    for (std::uint32_t left = here; left != 0;) {
      const int lane = std::countr_zero(left);
      const std::uint32_t members = warp.lanes<std::uint32_t>(it.members)[lane];
      const std::uint32_t present = warp.lanes_with(here, it.members, members);
      left &= ~present;
      if (const std::uint32_t strangers = present & ~members; strangers != 0) {
        throw LaneFault{std::countr_zero(strangers), "is not in its own mask"};
      }
      if (present != members) continue;
      warp.activate(members);
      it.execute(warp, it);
      warp.at_meeting &= ~members;
      warp.place(members, warp.at + 1);
    }
  }

  /// Lets all threads go on from the barrier where they wait; false if all have returned.
  bool pass_barrier() {
    std::uint32_t barrier = kNever;
    unsigned num_waiting = 0;
    for (const WarpState& warp : warps_) {
      for_each_lane(warp.at_barrier, [&](int lane) {
        const std::uint32_t at = warp.place_of(lane) - 1;
        if (num_waiting++ == 0) barrier = at;
        if (at == barrier) return;
        report(warp, lane, at, text("is not where others wait: statement ", at, ", not ", barrier));
      });
    }
    const unsigned num_returned = shape_.block.x - num_waiting;
    for (WarpState& warp : warps_) {
      if (num_returned != 0 && warp.at_barrier != 0) {
        report(warp,
               std::countr_zero(warp.at_barrier),
               barrier,
               text("waits for ", num_returned, " threads that have returned"));
      }
      warp.at_barrier = 0;
    }
    return num_waiting != 0;
  }

  [[noreturn]] void report(const WarpState& warp,
                           int lane,
                           std::uint32_t at,
                           const std::string& what) const {
    fail<simt::KernelFault>("[ptx] kernel ",
                            shape_.name,
                            ", block ",
                            block_,
                            ", thread ",
                            warp.index * kLanes + lane,
                            ": \"",
                            kernel_.statements.at(at),
                            "\" ",
                            what);
  }

  const Kernel& kernel_;
  const simt::LaunchShape& shape_;
  std::vector<std::byte> shared_;
  std::vector<WarpState> warps_;
  std::vector<std::byte> files_;  ///< all bits set where nothing was written
  Memory memory_;
  simt::Dim3 block_;
  std::int64_t num_run_ = 0;
};

}  // namespace

std::int64_t run_grid(const Kernel& kernel,
                      const simt::LaunchShape& shape,
                      const std::vector<std::byte>& parameters) {
  simt::check_launch(shape);
  return Machine(kernel, shape, parameters).run();
}

}  // namespace accrue::ptx
