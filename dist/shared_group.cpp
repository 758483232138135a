#include "accrue/dist/shared_group.h"

#include "accrue/dist/waiting.h"

#include <algorithm>
#include <cstring>

namespace accrue::dist {
namespace {

template <std::size_t N>
void write_text(char (&to)[N], const std::string& message) {
  to[message.copy(to, N - 1)] = '\0';
}

/// Piece number `round` of `bytes` that is cut into boxes of `box` bytes.
template <class Span>
Span piece(Span bytes, std::uint64_t round, std::size_t box) {
  const std::size_t begin = std::min(bytes.size(), static_cast<std::size_t>(round) * box);
  return bytes.subspan(begin, std::min(box, bytes.size() - begin));
}

bool goes_to_all(const Movement& movement) {
  return movement.outgoing.size() < movement.incoming.size();
}

}  // namespace

SharedGroup::SharedGroup(int rank, int size, double timeout, SharedRegion region)
    : ProcessGroup(rank, size, timeout), region_(std::move(region)) {}

std::int64_t SharedGroup::step_bytes() const {
  return static_cast<std::int64_t>(SharedRegion::kBoxBytes) / size() / 64 * 64;
}

void SharedGroup::leave_calls(const std::string& reason) noexcept {
  if (is_leaving_.exchange(true)) return;
  RankSlot& mine = region_.slot(rank());
  write_text(mine.reason, reason);
  mine.has_left.store(true, std::memory_order_release);
}

void SharedGroup::move(const Movement& movement) { run(movement, false); }

std::vector<std::span<const std::byte>> SharedGroup::look(
    std::span<const std::span<const std::byte>> outgoing, std::span<const std::size_t> sizes) {
  // Boxes alternate, so those of this step stay as they are until this rank comes to the next.
  const std::uint64_t step = step_;
  const std::vector<std::span<std::byte>> nowhere(sizes.size());
  run({outgoing, nowhere}, false);
  std::vector<std::span<const std::byte>> result;
  for (int r = 0; r < size(); ++r) {
    const std::byte* box = region_.box(r, step) + rank() * step_bytes();
    result.emplace_back(box, sizes[static_cast<std::size_t>(r)]);
  }
  return result;
}

void SharedGroup::compare_and_move(const Call& call, const Movement& movement) {
  call_ = call;
  run(movement, true);
}

void SharedGroup::run(const Movement& movement, bool compare) {
  const std::size_t box = box_bytes(movement);
  std::size_t longest = 1;
  for (const auto& bytes : movement.outgoing) longest = std::max(longest, bytes.size());
  std::uint64_t rounds = (longest + box - 1) / box;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    check_intact();
    RankSlot& mine = region_.slot(rank());
    mine.call[step_ % 2] = call_;
    mine.rounds[step_ % 2] = rounds;
    put(movement, round);
    mine.steps.store(step_ + 1, std::memory_order_release);
    region_.arrivals().raise(static_cast<std::uint32_t>((step_ + 1) * size()));
    wait_for_all();  // a step that all have come to is good, even if the next one breaks
    if (compare && round == 0) compare_calls();
    for (int r = 0; round == 0 && r < size(); ++r) {
      rounds = std::max(rounds, region_.slot(r).rounds[step_ % 2]);
    }
    take(movement, round);
    ++step_;
  }
}

/// What one step carries per destination: all of a rank's box if it is the same for all.
std::size_t SharedGroup::box_bytes(const Movement& movement) const {
  return goes_to_all(movement) ? SharedRegion::kBoxBytes : static_cast<std::size_t>(step_bytes());
}

void SharedGroup::put(const Movement& movement, std::uint64_t round) {
  std::byte* const box = region_.box(rank(), step_);
  const std::size_t width = box_bytes(movement);
  for (std::size_t r = 0; r < movement.outgoing.size(); ++r) {
    if (!goes_to_all(movement) && static_cast<int>(r) == rank()) continue;
    const auto bytes = piece(movement.outgoing[r], round, width);
    if (!bytes.empty()) std::memcpy(box + r * width, bytes.data(), bytes.size());
  }
}

void SharedGroup::take(const Movement& movement, std::uint64_t round) {
  const std::size_t width = box_bytes(movement);
  const std::size_t mine = goes_to_all(movement) ? 0 : static_cast<std::size_t>(rank());
  for (int r = 0; r < size(); ++r) {
    const auto to = piece(movement.incoming[static_cast<std::size_t>(r)], round, width);
    if (to.empty()) continue;
    const std::byte* from = region_.box(r, step_) + mine * width;
    if (r == rank()) from = piece(movement.outgoing[mine], round, width).data();
    if (from != to.data()) std::memcpy(to.data(), from, to.size());
  }
}

void SharedGroup::compare_calls() {
  std::vector<Call> calls;
  for (int r = 0; r < size(); ++r) calls.push_back(region_.slot(r).call[step_ % 2]);
  try {
    check_same(calls);
  } catch (const MismatchError& error) {
    break_group(Breakage::mismatch, error.what());
  }
}

void SharedGroup::wait_for_all() {
  Waiting waiting(timeout(), size());
  const RankSlot& mine = region_.slot(rank());
  for (int r = 0; r < size(); ++r) {
    while (true) {
      const std::uint32_t arrivals = region_.arrivals().read();
      if (has_come(r)) break;
      check_intact();
      if (mine.has_left.load(std::memory_order_acquire)) break_for(rank(), mine.reason);
      check_on(r, waiting.is_long() && !is_alive(r));
      if (waiting.pause(region_.arrivals(), arrivals)) continue;
      break_group(Breakage::timeout, late(call_, timeout(), ranks_behind()));
    }
  }
}

/// Breaks the group if `rank` left, or died, before it came to this step.
void SharedGroup::check_on(int rank, bool may_be_dead) {
  const RankSlot& other = region_.slot(rank);
  const bool has_left = other.has_left.load(std::memory_order_acquire);
  if ((!has_left && !may_be_dead) || has_come(rank)) return;
  break_for(rank, has_left ? other.reason : "its process died");
}

void SharedGroup::break_for(int rank, const char* reason) {
  break_group(Breakage::lost, gone(call_, rank, reason));
}

std::string SharedGroup::ranks_behind() const {
  std::string ranks;
  for (int r = 0; r < size(); ++r) {
    if (!has_come(r)) ranks += text(ranks.empty() ? "" : ", ", r);
  }
  return ranks;
}

bool SharedGroup::all_have_left(double seconds) const {
  Waiting waiting(seconds, size());
  for (int r = 0; r < size(); ++r) {
    while (!region_.slot(r).has_left.load(std::memory_order_acquire)) {
      if (!waiting.pause() || (waiting.is_long() && !is_alive(r))) return false;
    }
  }
  return true;
}

void SharedGroup::check_intact() {
  const Breakage& breakage = region_.breakage();
  if (breakage.state.load(std::memory_order_acquire) != Breakage::written) return;
  note_broken();
  if (breakage.kind == Breakage::timeout) throw TimeoutError(breakage.message);
  if (breakage.kind == Breakage::mismatch) throw MismatchError(breakage.message);
  throw DistributedError(breakage.message);
}

void SharedGroup::break_group(Breakage::Kind kind, const std::string& message) {
  Breakage& breakage = region_.breakage();
  int expected = Breakage::intact;
  if (breakage.state.compare_exchange_strong(expected, Breakage::being_written)) {
    breakage.kind = kind;
    write_text(breakage.message, message);
    breakage.state.store(Breakage::written, std::memory_order_release);
  }
  for (Waiting waiting(1, size()); waiting.pause();) check_intact();
  throw DistributedError(message);  // the rank that was writing died
}

}  // namespace accrue::dist
