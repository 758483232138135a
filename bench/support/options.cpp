#include "accrue/bench/support/options.h"

#include "accrue/bench/support/program.h"
#include "accrue/core/device_backend.h"
#include "accrue/core/device_name.h"
#include "accrue/core/error.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>

namespace accrue::bench {

struct Options::Parser {
  CLI::App app;
  std::vector<std::string> flags;
};

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw ProgramEnd{kUsage, message + "; --help lists the options"};
}

std::string flag_name(const std::string& name) { return "--" + name; }

std::int64_t to_integer(const std::string& name,
                        const std::string& given,
                        std::int64_t min,
                        std::int64_t max) {
  std::int64_t value = 0;
  const char* end = given.data() + given.size();
  const auto [last, error] = std::from_chars(given.data(), end, value);
  if (error != std::errc() || last != end || value < min || value > max) {
    refuse(text("--", name, " must be an integer in [", min, ", ", max, "], got '", given, "'"));
  }
  return value;
}

}  // namespace

Options::Options(const std::string& description) : parser_(std::make_unique<Parser>()) {
  parser_->app.description(description);
}
Options::~Options() = default;

void Options::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag_callback(
      flag_name(name), [&value] { value = true; }, help);
  parser_->flags.push_back(flag_name(name));
}

void Options::integer(const std::string& name,
                      std::int64_t& value,
                      const std::string& help,
                      std::int64_t min,
                      std::int64_t max) {
  parser_->app
      .add_option_function<std::string>(
          flag_name(name),
          [&value, name, min, max](const std::string& given) {
            value = to_integer(name, given, min, max);
          },
          help)
      ->type_name("value")  // in messages
      ->option_text(value < min ? "N" : text("N [", value, "]"));
}

void Options::choice(const std::string& name,
                     std::size_t& value,
                     const std::vector<std::string>& choices,
                     const std::string& help) {
  const std::string listed = CLI::detail::join(choices, "|");
  parser_->app
      .add_option_function<std::string>(
          flag_name(name),
          [&value, name, choices, listed](const std::string& given) {
            const auto found = std::find(choices.begin(), choices.end(), given);
            if (found == choices.end())
              refuse(text("--", name, " must be ", listed, ", got '", given, "'"));
            value = static_cast<std::size_t>(found - choices.begin());
          },
          help)
      ->type_name("value")
      ->option_text(listed + " [" + choices[value] + "]");
}

void Options::device(Device& value) {
  parser_->app
      .add_option_function<std::string>(
          "--device",
          [&value](const std::string& given) {
            const std::optional<Device> named = device_named(given);
            if (!named) refuse("--device must be cpu, cuda or cuda:N, got '" + given + "'");
            value = Device::cpu();
            if (named->is_cpu()) return;
            const int count = cuda_device_count();
            if (count == 0) {
              std::fprintf(stderr, "running on the CPU: %s\n", why_no_cuda().c_str());
            } else if (named->index >= count) {
              refuse(text("--device must be one of cuda:0 to cuda:", count - 1, ", got ", given));
            } else {
              value = *named;
            }
          },
          "where to train")
      ->type_name("value")
      ->option_text("cpu|cuda [cpu]");
}

void Options::word(const std::string& name,
                   std::string& value,
                   const std::string& placeholder,
                   const std::string& help) {
  parser_->app.add_option(flag_name(name), value, help)
      ->type_name("value")
      ->option_text(placeholder);
}

void Options::file(const std::string& name, std::string& value, const std::string& help) {
  word(name, value, "FILE", help);
}

void Options::parse(int argc, char** argv) {
  for (const std::string argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    for (const std::string& flag : parser_->flags) {  // CLI11 takes --flag=true all the same
      if (argument.starts_with(flag + "="))
        refuse(flag + " takes no value, got '" + argument + "'");
    }
  }
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(parser_->app.help().c_str(), stdout);
    throw ProgramEnd{kDone, ""};
  } catch (const CLI::ExtrasError&) {  // whose text turns the order around
    const std::vector<std::string> rest = parser_->app.remaining();
    const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
    const auto option = std::find_if(rest.begin(), rest.end(), is_option);
    refuse(option == rest.end() ? text("there is nothing to do with '", rest.front(), "'")
                                : text("there is no option ", *option));
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
  for (const CLI::Option* option : parser_->app.get_options()) {
    if (option->count() > 1) refuse(option->get_name() + " is given more than once");
  }
}

}  // namespace accrue::bench
