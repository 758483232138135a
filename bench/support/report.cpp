#include "accrue/bench/support/report.h"

#include "accrue/bench/support/program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <thread>

namespace accrue::bench {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string in_unit(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

}  // namespace

Turn repeated(std::function<void()> call, double seconds) {
  return [call = std::move(call), seconds] {
    const double start = seconds_now();
    double passed = 0;
    std::int64_t calls = 0;
    for (std::int64_t batch = 1; passed < seconds; batch *= 2) {
      for (std::int64_t i = 0; i < batch; ++i) call();
      calls += batch;
      passed = seconds_now() - start;
    }
    return passed / static_cast<double>(calls);
  };
}

Turn rested(Turn turn, int threads) {
  if (threads == 1) return turn;
  return [turn = std::move(turn)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    return turn();
  };
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Pair time_in_turns(const Turn& ours, const Turn& peer, int pairs) {
  ours();
  peer();
  std::vector<double> our_times, peer_times, ratios;
  for (int i = 0; i < pairs; ++i) {
    our_times.push_back(ours());
    peer_times.push_back(peer());
    ratios.push_back(peer_times.back() / our_times.back());
  }
  return {median(our_times), median(peer_times), median(ratios)};
}

void Report::machine(const std::string& key, const std::string& value) {
  machine_.emplace_back(key, value);
  fmt::print("{}: {}\n", key, value);
}

void Report::compare(const std::string& name, const Pair& pair, double least) {
  const bool reached = pair.ratio >= least;
  holds_ = holds_ && reached;
  cases_.emplace_back(name, pair);
  fmt::print("{:<44} ours {:>10}   peer {:>10}   {:>6.2f}x{}\n",
             name,
             in_unit(pair.ours),
             in_unit(pair.peer),
             pair.ratio,
             least == 0 ? "" : fmt::format("   {} {:.2f}x", reached ? ">=" : "MISSED:", least));
}

void Report::limit(const std::string& name, double value, double limit, const std::string& unit) {
  const bool kept = value <= limit;
  holds_ = holds_ && kept;
  claims_.push_back({name, value, limit, unit});
  fmt::print(
      "{:<44} {:>10.9g} {}   {} {:.9g}\n", name, value, unit, kept ? "<=" : "MISSED:", limit);
}

void Report::require(const std::string& name, bool holds) {
  limit(name, holds ? 0 : 1, 0, "faults");
}

double Report::geomean() const {
  double sum = 0;
  for (const auto& [name, pair] : cases_) sum += std::log(pair.ratio);
  return cases_.empty() ? 1 : std::exp(sum / static_cast<double>(cases_.size()));
}

void Report::write(const std::string& path) const {
  if (path.empty()) return;
  nlohmann::ordered_json root;
  root["cases"] = nlohmann::json::array();
  for (const auto& [name, pair] : cases_) {
    root["cases"].push_back(
        {{"name", name}, {"ours", pair.ours}, {"peer", pair.peer}, {"ratio", pair.ratio}});
  }
  root["geomean"] = geomean();
  root["claims"] = nlohmann::json::array();
  for (const auto& [name, value, limit, unit] : claims_) {
    root["claims"].push_back({{"name", name}, {"value", value}, {"limit", limit}, {"unit", unit}});
  }
  root["machine"] = {{"processor", processor()},
                     {"cores", std::thread::hardware_concurrency()},
                     {"compiler", __VERSION__}};
  for (const auto& [key, value] : machine_) root["machine"][key] = value;

  std::ofstream file(path);
  if (!file) throw ProgramEnd{kCannotCreate, "cannot create " + path};
  file << root.dump(2) << '\n';
  file.close();
  if (!file) throw ProgramEnd{kInputOutput, "cannot write " + path};
}

}  // namespace accrue::bench
