#include "accrue/dist/call.h"

#include <algorithm>
#include <vector>

namespace accrue::dist {
namespace {

constexpr const char* kNames[] = {"barrier",
                                  "all_reduce",
                                  "reduce",
                                  "broadcast",
                                  "all_gather",
                                  "reduce_scatter",
                                  "all_to_all",
                                  "all_gather_bytes",
                                  "all_to_all_bytes",
                                  "sum_nodes",
                                  "ring_all_reduce",
                                  "duplicate"};

const char* name_of(ReduceOp op) {
  return op == ReduceOp::sum ? "sum" : op == ReduceOp::max ? "max" : "min";
}

std::string detail_of(const Call& call) {
  switch (call.kind) {
    case CallKind::all_reduce:
    case CallKind::reduce_scatter:
      return text("(", name_of(static_cast<ReduceOp>(call.detail)), ")");
    case CallKind::reduce:
      return text("(",
                  name_of(static_cast<ReduceOp>(call.detail >> 14)),
                  " to rank ",
                  call.detail & 0x3fff,
                  ")");
    case CallKind::broadcast:
      return text("(from rank ", call.detail, ")");
    case CallKind::sum_nodes:
      return text("(", call.detail, " tensors)");
    default:
      return "";
  }
}

bool has_elements(CallKind kind) {
  return kind != CallKind::barrier && kind != CallKind::all_gather_bytes &&
         kind != CallKind::all_to_all_bytes && kind != CallKind::duplicate;
}

}  // namespace

const char* name_of(CallKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "an unknown call";
}

std::string describe(const Call& call) {
  std::string what = text("call ", call.sequence, ", ", name_of(call.kind), detail_of(call));
  if (has_elements(call.kind)) what += text(" of ", call.count, " ", call.dtype);
  return what;
}

void check_same(std::span<const Call> calls) {
  const auto differs = [&](const Call& call) { return call != calls.front(); };
  if (std::none_of(calls.begin(), calls.end(), differs)) return;
  // Ranks that agree share an entry, in the order of their first rank.
  std::string message;
  std::vector<char> is_named(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (is_named[i]) continue;
    message += message.empty() ? "rank " : "; rank ";
    for (std::size_t j = i; j < calls.size(); ++j) {
      if (calls[j] != calls[i]) continue;
      message += text(j == i ? "" : ", ", j);
      is_named[j] = 1;
    }
    message += ": " + describe(calls[i]);
  }
  fail<MismatchError>("[dist] all ranks must make the same call, got ",
                      message,
                      "; issue collectives in one order with equal shapes on all ranks");
}

}  // namespace accrue::dist
