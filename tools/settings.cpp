#include "accrue/tools/settings.h"

#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"
#include "accrue/train/precision.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

namespace accrue::tools {
namespace {

constexpr std::int64_t kMostPort = 65535;

[[noreturn]] void refuse(const std::string& message) {
  throw bench::ProgramEnd{bench::kConfiguration, message};
}

/// A file while its keys are taken one by one.
class SettingsFile {
 public:
  SettingsFile(const std::string& name, const YAML::Node& root) : name_(name), root_(root) {
    if (!root.IsMap()) refuse(text(name, " must hold lines of the form key: value"));
    for (const auto& entry : root) {
      const auto key = entry.first.as<std::string>();
      if (!unread_.insert(key).second)
        refuse(text(name, " must hold ", key, " once, got it twice"));
    }
  }

  /// The value of `key`, `otherwise` where the file lacks it or says null.
  template <class T>
  T take(const std::string& key, const T& otherwise) {
    unread_.erase(key);
    const YAML::Node value = root_[key];
    if (!value || value.IsNull()) return otherwise;
    try {
      return value.as<T>();
    } catch (const YAML::Exception&) {
      const std::string got = value.IsScalar() ? value.Scalar() : "a list or map";
      refuse(text(name_, ": ", key, " has a value of the wrong kind, got '", got, "'"));
    }
  }
  /// A number in [min, max]; -1 is Accelerate's word for open.
  std::int64_t take_number(const std::string& key,
                           std::int64_t min,
                           std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
    const auto value = take<std::int64_t>(key, -1);
    if (value != -1 && value < min) {
      refuse(text(name_, ": ", key, " must be at least ", min, ", got ", value));
    }
    if (value > max) refuse(text(name_, ": ", key, " must be at most ", max, ", got ", value));
    return value;
  }
  std::string take_hostfile() {
    unread_.erase("mpirun_config");
    const YAML::Node value = root_["mpirun_config"];
    return value && value.IsMap() ? value["mpirun_hostfile"].as<std::string>("") : "";
  }

  void warn_of_the_rest() const {
    std::string keys;
    for (const std::string& key : unread_) keys += (keys.empty() ? "" : ", ") + key;
    if (keys.empty()) return;
    std::fprintf(stderr, "accrue: %s: no effect here: %s\n", name_.c_str(), keys.c_str());
  }

 private:
  std::string name_;
  YAML::Node root_;
  std::set<std::string> unread_;
};

YAML::Node load(const std::string& file) {
  if (!std::ifstream(file) || std::filesystem::is_directory(file)) {
    throw bench::ProgramEnd{bench::kMissingInput, text("cannot read the configuration ", file)};
  }
  try {
    return YAML::LoadFile(file);
  } catch (const YAML::Exception& error) {
    refuse(text(file, " must be YAML: ", error.what()));
  }
}

/// What a file says of where to train must be what this build can do, and one thing only.
void check_place(const std::string& file, SettingsFile& values, std::int64_t num_processes) {
  const std::string environment = values.take<std::string>("compute_environment", "LOCAL_MACHINE");
  if (environment != "LOCAL_MACHINE") {
    refuse(text(file, ": compute_environment must be LOCAL_MACHINE, got '", environment, "'"));
  }
  const std::string type = values.take<std::string>("distributed_type", "MULTI_CPU");
  if (type != "NO" && type != "MULTI_CPU") {
    refuse(text(file,
                ": distributed_type must be NO or MULTI_CPU in a build for the CPU, got '",
                type,
                "'; train there with --num_processes and no --config_file"));
  }
  if (type == "NO" && num_processes > 1) {
    refuse(text(file,
                ": distributed_type NO contradicts num_processes ",
                num_processes,
                "; write MULTI_CPU"));
  }
  if (!values.take("use_cpu", true) && type == "MULTI_CPU") {
    refuse(text(file, ": use_cpu false contradicts distributed_type MULTI_CPU; write true"));
  }
}

}  // namespace

void add_options(bench::Options& options, Settings& s, std::string& config_file) {
  options.integer("num_processes", s.num_processes, "processes, of all machines together");
  options.integer("num_machines", s.num_machines, "machines; more than one need --hostfile");
  options.integer("machine_rank", s.machine_rank, "this machine, 0: it starts all others", 0);
  options.word("main_process_ip", s.main_process_ip, "IP", "accepted: Open MPI finds addresses");
  options.integer("main_process_port", s.main_process_port, "accepted: and ports", 0, kMostPort);
  options.file("hostfile", s.hostfile, "the machines, one a line, as mpirun reads it");
  options.word("mixed_precision", s.mixed_precision, "MODE", "no, bf16 or fp16");
  options.file("config_file", config_file, "settings that are not given, in Accelerate's YAML");
}

void read_settings(const std::string& file, Settings& s) {
  SettingsFile values(file, load(file));
  const auto fill = [](auto& setting, const auto& value, const auto& open) {
    if (setting == open) setting = value;
  };
  const std::int64_t open = -1;
  const std::string none;
  const std::int64_t num_processes = values.take_number("num_processes", 1);
  check_place(file, values, num_processes);
  fill(s.num_processes, num_processes, open);
  fill(s.num_machines, values.take_number("num_machines", 1), open);
  fill(s.machine_rank, values.take_number("machine_rank", 0), open);
  fill(s.main_process_ip, values.take("main_process_ip", none), none);
  fill(s.main_process_port, values.take_number("main_process_port", 0, kMostPort), open);
  fill(s.mixed_precision, values.take("mixed_precision", none), none);
  fill(s.hostfile, values.take_hostfile(), none);
  values.warn_of_the_rest();
}

void check(const Settings& s) {
  const std::int64_t machines = std::max<std::int64_t>(s.num_machines, 1);
  if (s.machine_rank >= machines) {
    refuse(text("machine_rank must be below num_machines ", machines, ", got ", s.machine_rank));
  }
  const std::int64_t processes = std::max<std::int64_t>(s.num_processes, 1);
  if (processes % machines != 0) {
    refuse(
        text("num_processes must be a multiple of num_machines ", machines, ", got ", processes));
  }
  if (!s.mixed_precision.empty()) train::mixed_precision_of(s.mixed_precision);
}

std::string to_yaml(const Settings& s) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  const auto put = [&out](const char* key, const auto& value) {
    out << YAML::Key << key << YAML::Value << value;
  };
  // Python reads a bare NO or no as false.
  const auto put_word = [&out](const char* key, const std::string& value) {
    out << YAML::Key << key << YAML::Value << YAML::SingleQuoted << value;
  };
  put("compute_environment", "LOCAL_MACHINE");
  put_word("distributed_type", s.num_processes > 1 ? "MULTI_CPU" : "NO");
  put("num_processes", std::max<std::int64_t>(s.num_processes, 1));
  put("num_machines", std::max<std::int64_t>(s.num_machines, 1));
  put("machine_rank", std::max<std::int64_t>(s.machine_rank, 0));
  if (!s.main_process_ip.empty()) put("main_process_ip", s.main_process_ip);
  if (s.main_process_port >= 0) put("main_process_port", s.main_process_port);
  put_word("mixed_precision", s.mixed_precision.empty() ? "no" : s.mixed_precision);
  put("use_cpu", true);
  if (!s.hostfile.empty()) {
    out << YAML::Key << "mpirun_config" << YAML::Value << YAML::BeginMap;
    put("mpirun_hostfile", s.hostfile);
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace accrue::tools
