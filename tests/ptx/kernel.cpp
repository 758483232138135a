#include "accrue/tests/ptx/kernel.h"

#include "accrue/core/error.h"
#include "accrue/tests/ptx/access.h"
#include "accrue/tests/ptx/arithmetic.h"
#include "accrue/tests/ptx/entry.h"
#include "accrue/tests/ptx/meeting.h"

#include <cstdlib>
#include <map>
#include <utility>

namespace accrue::ptx {
namespace {

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

/// "opcode a, {b, c}|d, [e+4]" as its words; braces vanish.
struct Words {
  std::string guard, opcode;
  std::vector<std::string> operands;

  explicit Words(const std::string& statement) {
    std::string word;
    std::vector<std::string> all;
    for (const char c : statement + " ") {
      const bool ends = c == ' ' || c == '\t' || c == ',' || c == '{' || c == '}' || c == '|';
      if (!ends) word += c;
      if (ends && !word.empty()) all.push_back(std::exchange(word, {}));
    }
    auto next = all.begin();
    if ((*next)[0] == '@') guard = *next++;
    if (next != all.end()) opcode = *next++;
    operands.assign(next, all.end());
  }
};

class Decoder {
 public:
  explicit Decoder(std::string_view text) : entry_(parse_entry(text)) {
    lay_out();
    std::map<std::string, std::uint32_t> labels;
    for (const std::string& statement : entry_.statements) {
      if (statement.back() == ':') {
        labels[statement.substr(0, statement.size() - 1)] =
            static_cast<std::uint32_t>(kernel_.statements.size());
      } else {
        kernel_.statements.push_back(statement);
      }
    }
    labels_ = std::move(labels);
  }

  Kernel kernel() && {
    for (const std::string& statement : kernel_.statements) {
      statement_ = statement;
      kernel_.code.push_back(decode(Words(statement)));
    }
    return std::move(kernel_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail<Error>("[ptx] ", why, " in \"", statement_, "\"");
  }

  void lay_out() {
    std::size_t end = 0;
    for (const Variable& parameter : entry_.parameters) {
      end = round_up(end, parameter.alignment);
      symbols_[parameter.name] = {Source::parameters, end};
      kernel_.parameter_offsets.push_back(end);
      kernel_.parameter_sizes.push_back(parameter.bytes);
      end += parameter.bytes;
    }
    kernel_.parameter_bytes = end;
    kernel_.max_threads = entry_.max_threads;
    lay_out_shared();
  }

  void lay_out_shared() {
    constexpr std::size_t kGap = 1024;
    for (const Variable& array : entry_.shared) {
      const std::size_t begin = round_up(kernel_.dynamic_shared, array.alignment);
      symbols_[array.name] = {Source::constant, begin};
      kernel_.shared.push_back({begin, array.bytes});
      kernel_.dynamic_shared = round_up(begin + array.bytes + kGap, 16);
      kernel_.shared_bytes = round_up(kernel_.shared_bytes, array.alignment) + array.bytes;
    }
    kernel_.shared_bytes = round_up(kernel_.shared_bytes, 16);
  }

  std::uint32_t new_register(int width) {
    const auto at = static_cast<std::uint32_t>(kernel_.file_bytes);
    kernel_.file_bytes += static_cast<std::size_t>(width) * kLanes;
    return at;
  }

  std::uint32_t preset(Source source, std::uint64_t value, int width) {
    const auto [place, is_new] = presets_.try_emplace({source, value, width}, 0);
    if (is_new) {
      place->second = new_register(width);
      kernel_.presets.push_back({source, value, place->second, width});
    }
    return place->second;
  }

  /// The width of a register, 0 if the word is none.
  int width_of(const std::string& word) const {
    const auto found = entry_.widths.find(word.substr(0, word.find_last_not_of("0123456789") + 1));
    return found == entry_.widths.end() ? 0 : found->second;
  }

  std::uint32_t operand(const std::string& word, int width) {
    if (const int own = width_of(word); own != 0) {
      if (own != width) refuse(text("the register ", word, " must have ", width, " bytes"));
      const auto [place, is_new] = registers_.try_emplace(word, 0);
      if (is_new) place->second = new_register(own);
      return place->second;
    }
    static const std::map<std::string, Source> special = {{"%tid.x", Source::thread},
                                                          {"%ntid.x", Source::threads},
                                                          {"%ctaid.x", Source::block_x},
                                                          {"%ctaid.y", Source::block_y},
                                                          {"%nctaid.x", Source::blocks_x},
                                                          {"%nctaid.y", Source::blocks_y}};
    if (const auto found = special.find(word); found != special.end()) {
      return preset(found->second, 0, width);
    }
    if (const auto found = symbols_.find(word); found != symbols_.end()) {
      return preset(found->second.first, found->second.second, width);
    }
    if (word.find("dynamic_shared_memory") != word.npos) {
      return preset(Source::constant, kernel_.dynamic_shared, width);
    }
    return preset(Source::constant, number(word), width);
  }

  std::uint64_t number(const std::string& word) const {
    const bool is_float = word.starts_with("0f") || word.starts_with("0d");
    char* end = nullptr;
    const std::uint64_t value =
        is_float ? std::strtoull(word.c_str() + 2, &end, 16) : std::strtoull(word.c_str(), &end, 0);
    if (word.empty() || *end != '\0') refuse("unknown operand " + word);
    return value;
  }

  Instruction decode(const Words& words) {
    Instruction it;
    if (!words.guard.empty()) {
      it.negates_guard = words.guard[1] == '!';
      it.guard = operand(words.guard.substr(it.negates_guard ? 2 : 1), 4);
    }
    if (words.opcode == "bra" || words.opcode == "bra.uni") {
      it.control = Control::branch;
      const auto label = labels_.find(words.operands.at(0));
      if (label == labels_.end()) refuse("unknown label");
      it.target = label->second;
    } else if (words.opcode == "ret") {
      it.control = Control::exit;
    } else if (words.opcode == "bar.sync" && words.operands == std::vector<std::string>{"0"}) {
      it.control = Control::barrier;
    } else if (find_access(words.opcode, it)) {
      decode_access(words.operands, it);
    } else {
      decode_other(words, it);
    }
    return it;
  }

  /// Of loads the address comes last, of stores first, of atomic operations second.
  void decode_access(std::vector<std::string> words, Instruction& it) {
    std::string address;
    std::erase_if(words, [&](const std::string& word) {
      if (word[0] == '[') address = word.substr(1, word.size() - 2);
      return word[0] == '[';
    });
    const auto plus = address.find('+');
    if (plus != address.npos) {
      it.offset = static_cast<std::int64_t>(number(address.substr(plus + 1)));
    }
    it.operand[0] = operand(address.substr(0, plus), it.space == Space::shared ? 4 : 8);
    if (words.size() >= it.operand.size()) refuse("too many elements");
    for (std::size_t i = 0; i < words.size(); ++i) {
      const int width = width_of(words[i]) == 8 ? 8 : 4;
      if (i == 0) it.is_wide = width == 8;
      it.operand[i + 1] = operand(words[i], it.is_wide ? 8 : 4);
    }
  }

  void decode_other(const Words& words, Instruction& it) {
    const bool moves8 = words.opcode == "mov.b64" && words.operands.size() == 3;
    const Form* form = !moves8                            ? find_form(words.opcode)
                       : width_of(words.operands[0]) == 8 ? find_form("pack")
                                                          : find_form("unpack");
    if (form == nullptr) {
      form = find_meeting(words.opcode);
      it.control = Control::meeting;
    }
    if (form == nullptr) refuse("unknown instruction");
    if (form->widths.size() != words.operands.size()) refuse("another number of operands");
    it.execute = form->execute;
    for (std::size_t i = 0; i < form->widths.size(); ++i) {
      it.operand[i] = operand(words.operands[i], form->widths[i]);
    }
    if (it.control == Control::meeting) it.members = it.operand[form->widths.size() - 1];
  }

  Entry entry_;
  Kernel kernel_;
  std::string statement_;
  std::map<std::string, std::uint32_t> registers_, labels_;
  std::map<std::string, std::pair<Source, std::uint64_t>> symbols_;
  std::map<std::tuple<Source, std::uint64_t, int>, std::uint32_t> presets_;
};

}  // namespace

Kernel decode(std::string_view entry) { return Decoder(entry).kernel(); }

}  // namespace accrue::ptx
