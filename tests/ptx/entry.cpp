#include "accrue/tests/ptx/entry.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace accrue::ptx {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::string_view trim(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t,;") + 1 - begin);
}

/// Behind the brace that closes the first one from `at` on.
std::size_t end_of_body(std::string_view text, std::size_t at) {
  int depth = 0;
  for (at = text.find('{', at); at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return text.size();
}

/// Calls body(line) for every line that has anything but blanks and ends of statements.
template <class Body>
void for_each_line(std::string_view text, const Body& body) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = trim(text.substr(0, end)); !line.empty()) body(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::size_t number_after(std::string_view text, std::string_view mark, std::size_t otherwise) {
  const auto at = text.find(mark);
  if (at == text.npos) return otherwise;
  return std::strtoull(std::string(text.substr(at + mark.size())).c_str(), nullptr, 10);
}

/// The bytes of the type that a declaration names.
std::size_t size_of_type(std::string_view declaration) {
  for (const auto& [mark, bytes] : {std::pair{"8 ", 1}, {"16 ", 2}, {"32 ", 4}, {"64 ", 8}}) {
    for (const char* const kind : {".b", ".u", ".s", ".f"}) {
      if (declaration.find(std::string(kind) + mark) != declaration.npos)
        return static_cast<std::size_t>(bytes);
    }
  }
  ACCRUE_CHECK(declaration.find(".pred ") != declaration.npos,
               Error,
               "ptx",
               "a declaration must have a type that the interpreter knows, got ",
               std::string(declaration));
  return 4;
}

/// ".param .align 8 .b8 name[40]" or ".shared .align 16 .b8 name[8704]"
Variable read_variable(std::string_view line) {
  const std::size_t size = size_of_type(line);
  const auto bracket = line.find('[');
  const auto head = line.substr(0, bracket);
  return {std::string(head.substr(head.rfind(' ') + 1)),
          size * number_after(line, "[", 1),
          number_after(line, ".align ", size)};
}

}  // namespace

std::string find_ptx(const std::byte* container, std::uint32_t architecture) {
  constexpr std::size_t kHeader = 16;
  constexpr std::uint16_t kPtx = 1;
  const std::byte* image = container + kHeader;
  const std::byte* const end = image + read<std::uint64_t>(container + 8);
  while (image < end) {
    const auto kind = read<std::uint16_t>(image);
    const auto header = read<std::uint32_t>(image + 4);
    const auto bytes = read<std::uint64_t>(image + 8);
    if (kind == kPtx && read<std::uint32_t>(image + 28) == architecture)
      return std::string(reinterpret_cast<const char*>(image + header), bytes);
    image += header + bytes;
  }
  fail<Error>("[ptx] a translation unit must hold PTX of sm_",
              architecture,
              "; build for it, with --no-compress");
}

std::map<std::string, std::string> split_entries(std::string_view ptx) {
  constexpr std::string_view kMark = ".entry ";
  std::map<std::string, std::string> entries;
  for (auto at = ptx.find(kMark); at != ptx.npos; at = ptx.find(kMark, at + 1)) {
    const auto begin = at + kMark.size();
    const auto name = ptx.substr(begin, ptx.find('(', begin) - begin);
    entries.emplace(name, ptx.substr(begin, end_of_body(ptx, begin) - begin));
  }
  return entries;
}

Entry parse_entry(std::string_view text) {
  Entry entry;
  for_each_line(text.substr(text.find('(') + 1), [&](std::string_view line) {
    if (line.starts_with(".param ")) {
      entry.parameters.push_back(read_variable(line));
    } else if (line.starts_with(".shared ")) {
      entry.shared.push_back(read_variable(line));
    } else if (line.starts_with(".reg ")) {
      const auto name = line.substr(line.find('%'));
      entry.widths[std::string(name.substr(0, name.find('<')))] = size_of_type(line) == 8 ? 8 : 4;
    } else if (line.starts_with(".maxntid ")) {
      entry.max_threads = number_after(line, ".maxntid ", 0);
    } else if (line[0] != '.' && line != ")" && line != "{" && line != "}") {
      entry.statements.emplace_back(line);
    } else if (line.starts_with(".") && !line.starts_with(".pragma")) {
      fail<Error>("[ptx] a declaration must be one that the interpreter knows, got ",
                  std::string(line));
    }
  });
  return entry;
}

}  // namespace accrue::ptx
