// config: reads, changes and writes the settings of a job.
#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/tools/commands.h"
#include "accrue/tools/settings.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace accrue::tools {
namespace {

/// The old file stays whole when the new one cannot be written.
void write(const std::string& file, const std::string& content) {
  const std::string unfinished = file + ".new";
  std::ofstream out(unfinished);
  out << content;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(unfinished, file, error);
  if (!out || error) throw bench::ProgramEnd{bench::kCannotCreate, text("cannot write ", file)};
}

}  // namespace

int configure(int argc, char** argv) {
  bench::Options options(
      "Prints the settings that accrue launch --config_file reads. With --config_file, takes what "
      "is "
      "not given from that file and writes all of it there.");
  Settings settings;
  std::string file;
  bool is_cpu = false;
  add_options(options, settings, file);
  options.flag("cpu", is_cpu, "accepted: the settings say so anyway");
  options.parse(argc, argv);
  const bool is_new = !file.empty() && !std::filesystem::exists(file);
  const bool is_changed = settings != Settings();
  if (!file.empty() && !is_new) read_settings(file, settings);
  check(settings);
  const std::string content = to_yaml(settings);
  if (!file.empty() && (is_new || is_changed)) write(file, content);
  std::fputs(content.c_str(), stdout);
  return bench::kDone;
}

}  // namespace accrue::tools
