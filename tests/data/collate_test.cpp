// Collating: stacking, padding as torch pads, sample axes, and samples that do not fit together.
#include "accrue/data/collate.h"

#include "accrue/core/error.h"
#include "accrue/tests/support/device.h"
#include "accrue/tests/support/doctest.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace accrue;
using accrue::data::default_collate;
using accrue::data::pad_sequence;
using accrue::data::PadCollate;
using accrue::data::Sample;
using accrue::test::There;

namespace {

std::vector<Tensor> tokens(std::initializer_list<std::int64_t> values) {
  return {There::of<std::int64_t>(values), There::of<std::int64_t>(values)};
}

}  // namespace

TEST_CASE("data.collate: fields are stacked along a first dimension that counts samples") {
  const std::vector<Sample> samples{{{There::of<float>({1, 2}), There::scalar<std::int64_t>(5)}},
                                    {{There::of<float>({3, 4}), There::scalar<std::int64_t>(6)}},
                                    {{There::of<float>({7, 8}), There::scalar<std::int64_t>(9)}}};
  const std::vector<Tensor> batch = default_collate(samples);
  REQUIRE(batch.size() == 2);
  CHECK(equal_bits(batch[0], There::of<float>({{1, 2}, {3, 4}, {7, 8}})));
  CHECK(equal_bits(batch[1], There::of<std::int64_t>({5, 6, 9})));
  for (const Tensor& field : batch) CHECK(field.sample_axis() == SampleAxis{0, 1});
}

TEST_CASE("data.collate: samples cut from a batch, or marked as mixed, are constants") {
  const Tensor batch = There::of<float>({{1, 2}, {3, 4}}).with_sample_axis({0, 1});
  Tensor mixed = There::zeros({2});
  mixed.copy_from(batch.select(0, 1));
  REQUIRE(mixed.sample_axis().is_mixed());
  const std::vector<Sample> samples{{{batch.select(0, 0)}}, {{mixed}}};
  CHECK(default_collate(samples)[0].sample_axis() == SampleAxis{0, 1});
  CHECK(PadCollate{}(samples)[0].sample_axis() == SampleAxis{0, 1});
}

TEST_CASE("data.collate: strided samples are stacked by their elements") {
  const Tensor table = There::of<float>({{1, 2}, {3, 4}});
  const std::vector<Sample> samples{{{table.select(1, 0)}}, {{table.select(1, 1)}}};
  CHECK(equal_bits(default_collate(samples)[0], There::of<float>({{1, 3}, {2, 4}})));
}

TEST_CASE("data.collate: samples that differ are named") {
  const Tensor two = There::zeros({2});
  const std::vector<Sample> shapes{{{two}, 4}, {{two}, 9}, {{There::zeros({3})}, 7}};
  CHECK_THROWS_WITH_AS(default_collate(shapes),
                       "[default_collate] shapes must agree, got [2] at sample 4 and [3] at sample "
                       "7; PadCollate joins sequences of unequal length",
                       ShapeError);
  const std::vector<Sample> ranks{{{two}, 4}, {{There::zeros({2, 1})}, 7}};
  CHECK_THROWS_WITH_AS(
      default_collate(ranks),
      "[default_collate] shapes must agree, got [2] at sample 4 and [2, 1] at sample 7",
      ShapeError);
  const std::vector<Sample> dtypes{{{two}, 4}, {{two.to(DType::int64)}, 7}};
  CHECK_THROWS_WITH_AS(default_collate(dtypes),
                       "[default_collate] dtypes must agree, got float32 at sample 4 and int64 at "
                       "sample 7; convert with to()",
                       DTypeError);
  const std::vector<Sample> counts{{{two}, 4}, {{two, two}, 7}};
  CHECK_THROWS_WITH_AS(default_collate(counts),
                       "[default_collate] samples must have equally many fields, got 1 at sample 4 "
                       "and 2 at sample 7",
                       ShapeError);
}

TEST_CASE("data.collate: absent samples, fields and tensors are refused") {
  CHECK_THROWS_WITH_AS(
      default_collate({}), "[default_collate] at least one sample is needed, got none", ValueError);
  const std::vector<Sample> empty{{{}, 3}};
  CHECK_THROWS_WITH_AS(
      default_collate(empty),
      "[default_collate] a sample must have at least one field, got none at sample 3",
      ValueError);
  const std::vector<Sample> undefined{{{Tensor{}}, 3}};
  CHECK_THROWS_WITH_AS(default_collate(undefined),
                       "[default_collate] fields must be defined tensors, got a "
                       "default-constructed one as field 0 of sample 3",
                       StateError);
}

TEST_CASE("data.collate: pad_sequence pads with zeros as torch does") {
  const std::vector<Tensor> sequences{
      There::of<float>({1, 2, 3}), There::zeros({0}), There::of<float>({4, 5})};
  const Tensor rows = pad_sequence(sequences);
  CHECK(equal_bits(rows, There::of<float>({{1, 2, 3}, {0, 0, 0}, {4, 5, 0}})));
  CHECK(rows.sample_axis() == SampleAxis{0, 1});
  const Tensor columns = pad_sequence(sequences, -1, false);
  CHECK(equal_bits(columns, There::of<float>({{1, -1, 4}, {2, -1, 5}, {3, -1, -1}})));
  CHECK(columns.sample_axis() == SampleAxis{1, 1});
}

TEST_CASE("data.collate: pad_sequence keeps every element and pads the rest") {
  int num_elements = 0;
  const bool holds = rc::check("elements stay", [&] {
    const auto lengths =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9)));
    const int width = *rc::gen::inRange(1, 4);
    const bool batch_first = *rc::gen::arbitrary<bool>();
    std::vector<Tensor> sequences;
    const Tensor numbers = There::arange(10000);
    std::int64_t start = 0;
    for (const int length : lengths) {
      sequences.push_back(numbers.narrow(0, start, length * width).reshape({length, width}));
      start += length * width;
    }
    const Tensor result = pad_sequence(sequences, -7, batch_first);
    const auto longest = *std::max_element(lengths.begin(), lengths.end());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const Tensor row = result.select(batch_first ? 0 : 1, static_cast<std::int64_t>(i));
      RC_ASSERT(row.shape() == Shape({longest, width}));
      const int length = lengths[i];
      RC_ASSERT(equal_bits(row.narrow(0, 0, length), sequences[i]));
      const auto padding = row.narrow(0, length, longest - length).to_vector<std::int64_t>();
      RC_ASSERT(std::count(padding.begin(), padding.end(), -7) == (longest - length) * width);
      num_elements += longest * width;
    }
  });
  CHECK(holds);
  MESSAGE(num_elements << " elements compared");
}

TEST_CASE("data.collate: sequences that cannot be padded are refused") {
  CHECK_THROWS_WITH_AS(
      pad_sequence({}), "[pad_sequence] at least one sequence must be given, got none", ValueError);
  const std::vector<Tensor> widths{There::zeros({2, 3}), There::zeros({4, 5})};
  CHECK_THROWS_WITH_AS(pad_sequence(widths),
                       "[pad_sequence] shapes must agree except in the first dimension, got [2, 3] "
                       "at sample 0 and [4, 5] at sample 1",
                       ShapeError);
  const std::vector<Tensor> scalar{There::scalar(1.0f)};
  CHECK_THROWS_WITH_AS(
      pad_sequence(scalar),
      "[pad_sequence] a sequence must have a dimension of time, got a scalar at sample 0",
      ShapeError);
  const std::vector<Tensor> undefined{Tensor{}};
  CHECK_THROWS_AS(pad_sequence(undefined), ShapeError);
  const std::vector<Tensor> bytes{There::of<std::uint8_t>({1}), There::of<std::uint8_t>({1, 2})};
  CHECK_THROWS_AS(pad_sequence(bytes, -100), ValueError);
}

TEST_CASE("data.collate: PadCollate pads inputs with 0 and labels with -100") {
  const std::vector<Sample> samples{{tokens({1, 2, 3})}, {tokens({4})}};
  const std::vector<Tensor> batch = PadCollate{}(samples);
  CHECK(equal_bits(batch[0], There::of<std::int64_t>({{1, 2, 3}, {4, 0, 0}})));
  CHECK(equal_bits(batch[1], There::of<std::int64_t>({{1, 2, 3}, {4, -100, -100}})));
  CHECK(batch[1].sample_axis() == SampleAxis{0, 1});
}

TEST_CASE("data.collate: PadCollate takes a value per field and stacks scalars") {
  const auto sample = [](std::initializer_list<std::int64_t> values, std::int64_t id) {
    return Sample{{There::of(values), There::scalar(id), There::of(values)}, id};
  };
  const std::vector<Sample> samples{sample({1}, 8), sample({2, 3}, 9)};
  const std::vector<Tensor> batch = PadCollate{{50256}}(samples);
  CHECK(equal_bits(batch[0], There::of<std::int64_t>({{1, 50256}, {2, 3}})));
  CHECK(equal_bits(batch[1], There::of<std::int64_t>({8, 9})));
  CHECK(equal_bits(batch[2], There::of<std::int64_t>({{1, 0}, {2, 3}})));
}
