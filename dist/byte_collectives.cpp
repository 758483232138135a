// Collectives of strings whose lengths differ between ranks: lengths travel first.
#include "accrue/dist/process_group.h"

#include <algorithm>
#include <cstring>

namespace accrue::dist {
namespace {

/// A length and the first bytes: short strings need no second step.
struct Head {
  static constexpr std::size_t kBytes = 2040;
  std::uint64_t size;
  char first[kBytes];

  std::size_t rest() const { return size > kBytes ? size - kBytes : 0; }
};

template <class T>
std::vector<std::span<std::byte>> one_each(std::vector<T>& values) {
  std::vector<std::span<std::byte>> pieces;
  for (T& value : values) pieces.push_back(std::as_writable_bytes(std::span(&value, 1)));
  return pieces;
}

}  // namespace

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view bytes) {
  return begin_all_gather_bytes({.kind = CallKind::all_gather_bytes}, bytes);
}

std::vector<std::string> ProcessGroup::begin_all_gather_bytes(Call call, std::string_view bytes) {
  Head head{bytes.size(), {}};
  std::copy_n(bytes.begin(), std::min(bytes.size(), Head::kBytes), head.first);
  std::vector<Head> heads(static_cast<std::size_t>(size()));
  const std::span<const std::byte> shown = std::as_bytes(std::span(&head, 1));
  begin(call, {{&shown, 1}, one_each(heads)});

  std::vector<std::string> result;
  std::vector<std::span<std::byte>> incoming;
  bool has_rest = false;
  for (const Head& from : heads) {
    std::string& text = result.emplace_back(from.first, from.size - from.rest());
    text.resize(from.size);
    has_rest |= from.rest() > 0;
  }
  if (!has_rest) return result;
  for (std::string& text : result) {
    incoming.push_back(
        std::as_writable_bytes(std::span(text).subspan(std::min(text.size(), Head::kBytes))));
  }
  const auto rest = std::as_bytes(std::span(bytes.substr(std::min(bytes.size(), Head::kBytes))));
  move({{&rest, 1}, incoming});
  return result;
}

std::vector<std::string> ProcessGroup::all_to_all_bytes(const std::vector<std::string>& pieces) {
  ACCRUE_CHECK(std::ssize(pieces) == size(),
               ValueError,
               "all_to_all_bytes",
               "needs one string per rank, ",
               size(),
               ", got ",
               pieces.size(),
               "; pass an empty one for a rank that gets nothing");
  std::vector<std::uint64_t> lengths, sizes(pieces.size());
  std::vector<std::span<const std::byte>> outgoing;
  for (const std::string& piece : pieces) lengths.push_back(piece.size());
  for (const auto& length : lengths) outgoing.push_back(std::as_bytes(std::span(&length, 1)));
  begin({.kind = CallKind::all_to_all_bytes}, {outgoing, one_each(sizes)});

  std::vector<std::string> result(pieces.size());
  std::vector<std::span<std::byte>> incoming;
  outgoing.clear();
  for (const std::string& piece : pieces) outgoing.push_back(std::as_bytes(std::span(piece)));
  for (std::size_t r = 0; r < result.size(); ++r) {
    result[r].resize(sizes[r]);
    incoming.push_back(std::as_writable_bytes(std::span(result[r])));
  }
  move({outgoing, incoming});
  return result;
}

}  // namespace accrue::dist
