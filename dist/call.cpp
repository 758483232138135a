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
                                  "duplicate",
                                  "end"};

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
         kind != CallKind::all_to_all_bytes && kind != CallKind::duplicate && kind != CallKind::end;
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

std::string gone(const Call& call, int rank, std::string_view reason) {
  return text("[",
              name_of(call.kind),
              "] all ranks must come to ",
              describe(call),
              ", got rank ",
              rank,
              " gone: ",
              reason,
              "; make all ranks issue the same collectives");
}

std::string late(const Call& call, double seconds, std::string_view ranks) {
  return text("[",
              name_of(call.kind),
              "] all ranks must come within ",
              seconds,
              " s, got nothing from rank ",
              ranks,
              " for ",
              describe(call),
              "; see what that rank does, or raise the timeout");
}

void check_same(std::span<const Call> calls) {
  const auto differs = [&](const Call& call) { return call != calls.front(); };
  if (std::none_of(calls.begin(), calls.end(), differs)) return;
  const auto ends = [](const Call& call) { return call.kind == CallKind::end; };
  const auto ending = std::find_if(calls.begin(), calls.end(), ends);
  if (ending != calls.end()) {
    const Call& other = *std::find_if_not(calls.begin(), calls.end(), ends);
    fail<DistributedError>(
        gone(other, static_cast<int>(ending - calls.begin()), "its process ended"));
  }
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
