#include "accrue/tests/dist/group_checks.h"

#include "accrue/tests/support/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace accrue::test {

using dist::ProcessGroup;
using dist::ReduceOp;

namespace {

constexpr std::int64_t kLongest = 70000;  // in several pieces
constexpr std::int64_t kLengths[] = {0, 1, 7, 1000, kLongest};
const bool is_quick = std::getenv("ACCRUE_QUICK") != nullptr;  // under sanitizers

/// Element i of rank r's tensor: small integers, so that every order of a sum is exact.
double value_at(int rank, std::int64_t i) { return static_cast<double>((i * 7 + rank * 5) % 11); }

Tensor values_of(int rank, std::int64_t length, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i) values.push_back(value_at(rank, i));
  return Tensor::from(values, {length}).to(dtype);
}

/// All ranks' tensors: [W, length].
Tensor stacked(const ProcessGroup& group, std::int64_t length, DType dtype) {
  std::vector<Tensor> rows;
  for (int r = 0; r < group.size(); ++r) {
    rows.push_back(values_of(r, length, dtype).view({1, length}));
  }
  return cat(rows);
}

Tensor reduced(const ProcessGroup& group, std::int64_t length, DType dtype, ReduceOp op) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i) {
    double value = value_at(0, i);
    for (int r = 1; r < group.size(); ++r) {
      const double other = value_at(r, i);
      value = op == ReduceOp::sum   ? value + other
              : op == ReduceOp::max ? std::max(value, other)
                                    : std::min(value, other);
    }
    values.push_back(value);
  }
  return Tensor::from(values, {length}).to(dtype);
}

int check_moves(ProcessGroup& group, std::int64_t length, DType dtype) {
  const Tensor mine = values_of(group.rank(), length, dtype);
  const Tensor all = stacked(group, length, dtype);
  CHECK(equal_bits(group.all_gather(mine), all));
  for (int root = 0; root < group.size(); ++root) {
    Tensor target = mine.clone();
    group.broadcast(target, root);
    CHECK(equal_bits(target, all.select(0, root)));
  }
  // Slice s of rank r holds the values of "rank" r + s.
  std::vector<Tensor> sent, wanted;
  for (int r = 0; r < group.size(); ++r) {
    sent.push_back(values_of(group.rank() + r, length, dtype).view({1, length}));
    wanted.push_back(values_of(r + group.rank(), length, dtype).view({1, length}));
  }
  CHECK(equal_bits(group.all_to_all(cat(sent)), cat(wanted)));
  return 2 + group.size();
}

int check_reductions(ProcessGroup& group, std::int64_t length, DType dtype, ReduceOp op) {
  const Tensor mine = values_of(group.rank(), length, dtype);
  const Tensor wanted = reduced(group, length, dtype, op);
  Tensor everywhere = mine.clone();
  group.all_reduce(everywhere, op);
  CHECK(equal_bits(everywhere, wanted));
  const int root = group.size() - 1;
  Tensor at_root = mine.clone();
  group.reduce(at_root, root, op);
  CHECK(equal_bits(at_root, group.rank() == root ? wanted : mine));
  const Tensor rows = mine.view({1, length}).expand({group.size(), length});
  CHECK(equal_bits(group.reduce_scatter(rows, op), wanted));
  return 3;
}

void check_layouts(ProcessGroup& group) {
  Tensor base = Tensor::zeros({3, 4});
  Tensor column = base.select(1, 2);
  column.fill(group.rank() + 1);
  group.all_reduce(column);
  const double sum = group.size() * (group.size() + 1) / 2.0;
  CHECK(equal_bits(column, Tensor::full({3}, sum)));
  CHECK(equal_bits(base.select(1, 1), Tensor::zeros({3})));
  Tensor scalar = Tensor::scalar<std::int64_t>(group.rank());
  group.broadcast(scalar, group.size() - 1);
  CHECK(scalar.item<std::int64_t>() == group.size() - 1);
  Tensor flag = Tensor::scalar(group.rank() == 0);
  group.all_reduce(flag, ReduceOp::max);
  CHECK(flag.item<bool>());
}

/// NaN wins max and min from any side.
void check_nan(ProcessGroup& group) {
  for (int at = 0; at < group.size(); ++at) {
    for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum}) {
      Tensor value = Tensor::scalar(group.rank() == at ? NAN : 1.0f);
      group.all_reduce(value, op);
      CHECK(std::isnan(value.item<float>()));
    }
  }
}

int check_bytes(ProcessGroup& group) {
  int calls = 0;
  for (const std::size_t scale : {0, 1, 100, 2040, 2041, 100000}) {
    const auto text = [&](int from, int to) {
      return std::string(scale * static_cast<std::size_t>(from), static_cast<char>('a' + to));
    };
    const std::vector<std::string> all = group.all_gather_bytes(text(group.rank(), group.rank()));
    REQUIRE(std::ssize(all) == group.size());
    for (int r = 0; r < group.size(); ++r) CHECK(all[static_cast<std::size_t>(r)] == text(r, r));
    std::vector<std::string> pieces;
    for (int r = 0; r < group.size(); ++r) pieces.push_back(text(group.rank(), r));
    pieces = group.all_to_all_bytes(pieces);
    for (int r = 0; r < group.size(); ++r) {
      CHECK(pieces[static_cast<std::size_t>(r)] == text(r, group.rank()));
    }
    calls += 2;
  }
  return calls;
}

}  // namespace

int check_collectives(ProcessGroup& group) {
  int calls = 0;
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : {DType::float32,
                              DType::float64,
                              DType::int64,
                              DType::int32,
                              DType::uint8,
                              DType::bfloat16}) {
      if (is_quick && length == kLongest && dtype != DType::float32) continue;
      calls += check_moves(group, length, dtype);
      if (dtype == DType::bfloat16) continue;
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
        calls += check_reductions(group, length, dtype, op);
      }
    }
  }
  calls += check_bytes(group);
  check_layouts(group);
  check_nan(group);
  const auto twin = group.duplicate();
  CHECK(twin->rank() == group.rank());
  CHECK(twin->size() == group.size());
  twin->barrier();
  group.barrier();
  return calls;
}

}  // namespace accrue::test
