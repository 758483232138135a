// What the interpreter finds in changed PTX, and which kernels the tests before have run in it.
#include "accrue/kernels/cuda/kernels.h"

#include "accrue/tests/ptx/device.h"
#include "accrue/tests/ptx/live_blocks.h"
#include "accrue/tests/support/doctest.h"
#include "accrue/tests/support/simt_check.h"

#include <random>
#include <regex>
#include <set>

using namespace accrue;
using namespace accrue::kernels;
using namespace accrue::test;

namespace {

/// Runs a kernel whose outputs have `expected` bits; what is wrong, or "".
template <class Launch>
std::string find_fault(DeviceFloats& out,
                       const std::vector<float>& expected,
                       const Launch& launch) {
  try {
    return examine({{"out", &out, expected}}, launch);
  } catch (const Error& error) {
    return error.what();
  }
}

/// Numbers between -1 and 1.
std::vector<float> numbers(std::size_t count) {
  std::mt19937 engine(1);
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(static_cast<double>(engine()) * 0x1p-31 - 1);
  return out;
}

std::string examine_sum() {
  const std::vector<float> x = numbers(30 * 700);
  std::vector<float> expected(30);
  launch_cpu(RowSum<float>{row_major(x.data(), 30, 700), expected.data()});
  DeviceFloats device_x(x), sum(DeviceFloats::unwritten(30));
  return find_fault(sum, expected, [&] {
    launch_cuda(RowSum<float>{row_major<const float>(device_x.data(), 30, 700), sum.data()}, {});
  });
}

std::string examine_product() {
  const std::vector<float> x = numbers(70 * 40), w = numbers(66 * 40);
  const auto product = [](const float* a, const float* b, float* y) {
    return LinearForward<float>{
        row_major(a, 70, 40), row_major(b, 66, 40), nullptr, row_major(y, 70, 66)};
  };
  std::vector<float> expected(70 * 66);
  launch_cpu(product(x.data(), w.data(), expected.data()));
  DeviceFloats device_x(x), device_w(w), y(DeviceFloats::unwritten(70 * 66));
  return find_fault(
      y, expected, [&] { launch_cuda(product(device_x.data(), device_w.data(), y.data()), {}); });
}

/// Sums of a row that its kernel keeps in more shared memory than launches have unasked.
std::string examine_kept_row() {
  constexpr std::int64_t kCols = 24000;
  const std::vector<float> x = numbers(kCols);
  const DeviceVector<std::int64_t> target = {7};
  std::vector<float> expected(1), max(1), sum(1);
  const auto forward = [&](const float* logits, float* loss, float* largest, float* total) {
    return CrossEntropyForward<float>{
        {.logits = row_major(logits, 1, kCols), .target = target.data()}, loss, largest, total};
  };
  launch_cpu(forward(x.data(), expected.data(), max.data(), sum.data()));
  DeviceFloats device_x(x), loss(DeviceFloats::unwritten(1)), device_max(max), device_sum(sum);
  return find_fault(loss, expected, [&] {
    launch_cuda(forward(device_x.data(), loss.data(), device_max.data(), device_sum.data()), {});
  });
}

struct Replacement {
  const char *pattern, *by;
  std::regex_constants::match_flag_type where = std::regex_constants::format_default;
};
constexpr auto kFirst = std::regex_constants::format_first_only;

struct Mistake {
  const char* name;
  std::string (*examine)();
  std::vector<Replacement> changes;
  const char* finding;
};

std::string found_in(const Mistake& mistake) {
  const ptx::PlantedChange planted([&](const std::string& entry) {
    std::string changed = entry;
    for (const auto& [pattern, by, where] : mistake.changes) {
      changed = std::regex_replace(changed, std::regex(pattern), by, where);
    }
    REQUIRE(changed != entry);
    return changed;
  });
  return mistake.examine();
}

const std::vector<Mistake> kMistakes = {
    {"a fused multiplication and addition in two steps",
     examine_product,
     {{R"(\.reg \.f32 %f<)", ".reg .f32 %planted;\n.reg .f32 %f<"},
      {R"(fma\.rn\.f32 (\S+), (\S+), (\S+), (\S+);)",
       "mul.rn.f32 %planted, $2, $3;\nadd.rn.f32 $1, %planted, $4;"}},
     ", expected "},
    {"leaves in another order",
     examine_sum,
     {{R"((mov\.u32 %r\d+), 16;)", "$1, distant;"},
      {R"((mov\.u32 %r\d+), 1;)", "$1, 16;"},
      {"distant;", "1;"}},
     ", expected "},
    {"sums that start with nothing",
     examine_product,
     {{R"(mov\.f32 %f\d+, 0f00000000;)", ""}},
     ", expected "},
    {"a barrier in each branch",
     examine_product,
     {{"bar\\.sync 0;",
       "setp.lt.u32 %branch, %tid.x, 32;\n@%branch bra $$L__other;\nbar.sync 0;\n"
       "bra $$L__both;\n$$L__other:\nbar.sync 0;\n$$L__both:",
       kFirst},
      {R"(\.reg \.pred %p<)", ".reg .pred %branch;\n.reg .pred %p<"}},
     "is not where others wait"},
    {"a barrier behind a return",
     examine_product,
     {{"bar\\.sync 0;", "setp.eq.u32 %branch, %tid.x, 255;\n@%branch ret;\nbar.sync 0;", kFirst},
      {R"(\.reg \.pred %p<)", ".reg .pred %branch;\n.reg .pred %p<"}},
     "waits for 1 threads that have returned"},
    {"a barrier while the rest of a warp waits elsewhere",
     examine_product,
     {{"bar\\.sync 0;",
       "setp.eq.u32 %branch, %tid.x, 40;\n@%branch bra $$L__both;\nbar.warp.sync -1;\n"
       "$$L__both:\nbar.sync 0;",
       kFirst},
      {R"(\.reg \.pred %p<)", ".reg .pred %branch;\n.reg .pred %p<"}},
     "waits for lanes that do not come; waiting fffffeff"},
    {"more threads than the kernel was compiled for",
     examine_product,
     {{"\\.maxntid 256,", ".maxntid 128,"}},
     "cudaErrorLaunchOutOfResources"},
    {"more shared memory than was asked for",
     examine_kept_row,
     {{R"((\.shared [^\[]*)\[256\])", "$1[160000]"}},
     "cudaErrorInvalidValue"},
    {"a missing barrier", examine_product, {{"bar\\.sync 0;", ""}}, "out["},
    {"an output that is not written",
     examine_sum,
     {{"st\\.global\\.f32 [^\n]*", ""}},
     "not written"},
    {"a load beyond the end",
     examine_sum,
     {{R"((ld\.global\.f32 %f\d+, \[%rd\d+)\])", "$1+4]"}},
     "byte 84000 of a block of 84000"},
    {"a shared load beyond the end",
     examine_product,
     {{R"((ld\.shared\.v4\.f32 [^\[]*\[%r\d+)\])", "$1+16384]"}},
     "of shared memory, in none of its arrays"},
    {"a shared store into the next array",
     examine_product,
     {{R"((st\.shared\.f32 \[%r\d+)\])", "$1+8704]", kFirst}},
     "of shared memory, in none of its arrays"},
    {"a store far beyond the end",
     examine_sum,
     {{R"((st\.global\.f32 \[%rd\d+)\])", "$1+40000]"}},
     " of a block of 120"},
    {"a parameter that there is not",
     examine_sum,
     {{R"((ld\.param\.u64 [^\]]*)\+\d+\])", "$1+40960]", kFirst}},
     "in no parameter"},
    {"a misaligned vector",
     examine_product,
     {{R"((ld\.shared\.v4\.f32 [^\[]*\[%r\d+)\])", "$1+4]"}},
     "is misaligned: 16 bytes"},
    {"a shuffle without a lane",
     examine_sum,
     {{R"((mov\.u32 %r\d+), -1;)", "$1, 2147483647;"}},
     "\" is not in its own mask"},
    {"a shuffle that lanes pass by",
     examine_sum,
     {{R"((shfl\.sync\.bfly\.b32 [^\n]*))", "@%skip bra $$L__skip;\n$1\n$$L__skip:"},
      {R"(\.reg \.pred %p<)", ".reg .pred %skip;\n.reg .pred %p<"},
      {R"(\n(mov\.b32 %r\d+, %f\d+;\nmov\.u32 %r\d+, 31;))",
       "\nsetp.eq.u32 %skip, %tid.x, 5;\n$1"}},
     "waits for lanes that do not come"},
    {"an unknown instruction",
     examine_product,
     {{"fma\\.rn\\.f32", "fma.rz.f32"}},
     "unknown instruction in \"fma.rz.f32"},
};

std::string list_of(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += "\n  " + name;
  return out;
}

}  // namespace

TEST_CASE("ptx.kernels: mistakes in PTX are found and named, and no others") {
  CHECK(examine_sum() == "");
  CHECK(examine_product() == "");
  CHECK(examine_kept_row() == "");
  for (const Mistake& mistake : kMistakes) {
    const std::string name = mistake.name, found = found_in(mistake);
    CAPTURE(name);
    CAPTURE(found);
    CHECK(found.find(mistake.finding) != found.npos);
  }
  MESSAGE(kMistakes.size(), " planted mistakes");
}

TEST_CASE("ptx.kernels: what lies less than 64 KB behind an array is no other array") {
  const simt::GuardedMemory memories[] = {
      simt::GuardedMemory(100), simt::GuardedMemory(4000), simt::GuardedMemory(100)};
  for (const simt::GuardedMemory& memory : memories) {
    for (std::size_t beyond = memory.size(); beyond < 64 * 1024; beyond += 1000) {
      CHECK(ptx::block_before(memory.data() + beyond).begin == memory.data());
    }
  }
}

TEST_CASE("ptx.kernels: memory of the host is out of reach") {
  const std::vector<float> x = numbers(12);
  DeviceFloats sum(DeviceFloats::unwritten(1));
  const std::string found = find_fault(sum, {0}, [&] {
    launch_cuda(RowSum<float>{row_major(x.data(), 1, 12), sum.data()}, {});
  });
  CHECK(found.find("is out of bounds: 4 bytes at 0x") != found.npos);
}

TEST_CASE("ptx.kernels: the tests before have run all kernels but those of float64 functions") {
  const ptx::Report it = ptx::report();
  MESSAGE(it.num_run,
          " kernels ran in ",
          it.launches,
          " launches, ",
          it.opcodes.size(),
          " instructions of PTX, ",
          it.instructions,
          " times, ",
          it.seconds,
          " s, ",
          it.reached,
          " of ",
          it.statements,
          " statements reached; not run:",
          list_of(it.left_out));
  CHECK(it.num_run + it.left_out.size() == it.entries);
  CHECK(it.left_out == std::set<std::string>{"map_kernel<double, 1, AnyValue>",
                                             "map_kernel<double, 3, AnySlope>"});
}
