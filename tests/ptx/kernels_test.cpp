// What the interpreter finds in changed PTX, and which kernels the tests before have run in it.
#include "accrue/kernels/cuda/kernels.h"

#include "accrue/tests/ptx/device.h"
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

struct Replacement {
  const char *pattern, *by;
};

struct Mistake {
  const char* name;
  std::string (*examine)();
  std::vector<Replacement> changes;
  const char* finding;
};

std::string found_in(const Mistake& mistake) {
  const ptx::PlantedChange planted([&](const std::string& entry) {
    std::string changed = entry;
    for (const auto& [pattern, by] : mistake.changes) {
      changed = std::regex_replace(changed, std::regex(pattern), by);
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
     "bytes of shared memory"},
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
  for (const Mistake& mistake : kMistakes) {
    const std::string name = mistake.name, found = found_in(mistake);
    CAPTURE(name);
    CAPTURE(found);
    CHECK(found.find(mistake.finding) != found.npos);
  }
  MESSAGE(kMistakes.size(), " planted mistakes");
}

TEST_CASE("ptx.kernels: the tests before have run all kernels but those of float64 functions") {
  const ptx::Report it = ptx::report();
  MESSAGE(it.ran.size(),
          " kernels ran in ",
          it.launches,
          " launches, ",
          it.opcodes.size(),
          " instructions of PTX, ",
          it.instructions,
          " times, ",
          it.seconds,
          " s; not run:",
          list_of(it.left_out));
  CHECK(it.left_out == std::set<std::string>{"map_kernel<double, 1, AnyValue>",
                                             "map_kernel<double, 3, AnySlope>"});
}
