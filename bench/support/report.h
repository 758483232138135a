// Report: what a benchmark measured against a peer, as a table on stdout and as a JSON file.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace accrue::bench {

/// Medians over turns of ours and of the peer.
struct Pair {
  double ours = 0;  ///< seconds per call
  double peer = 0;  ///< seconds per call
  double ratio =
      0;  ///< of each turn of the peer to that of ours before it; above 1: ours is faster
};

/// Runs something often enough to be measured, and returns the seconds per call.
using Turn = std::function<double()>;

/// A turn that calls `call` until `seconds` have passed.
Turn repeated(std::function<void()> call, double seconds = 0.02);

/// `turn`, of ours, after a rest where `threads` > 1: threads of OpenBLAS spin for 0.1 s after
/// their last product, on a core that ours need. Ours leave theirs alone at once.
Turn rested(Turn turn, int threads);

/// Takes `pairs` turns of each, ours and peer one after the other, so that a change of clock or
/// load hits both sides of a ratio. One turn of each before warms up.
Pair time_in_turns(const Turn& ours, const Turn& peer, int pairs = 15);

double median(std::vector<double> values);

/// Collects cases and claims; each prints its line when it is added.
class Report {
 public:
  /// Text for the JSON's `machine`, beside the processor, its cores and the compiler.
  void machine(const std::string& key, const std::string& value);
  /// A case, which must reach `least` times the speed of the peer.
  void compare(const std::string& name, const Pair& pair, double least = 0);
  /// A figure of ours that must not exceed `limit`.
  void limit(const std::string& name, double value, double limit, const std::string& unit);
  /// Any other condition.
  void require(const std::string& name, bool holds);

  double geomean() const;
  /// True while nothing that was added is missed.
  bool holds() const { return holds_; }

  /// {"cases": [{"name", "ours", "peer", "ratio"}], "geomean", "claims": [...], "machine"}. An
  /// empty path writes nothing. Errors: ProgramEnd with kCannotCreate or kInputOutput.
  void write(const std::string& path) const;

 private:
  struct Claim {
    std::string name;
    double value, limit;
    std::string unit;
  };

  std::vector<std::pair<std::string, Pair>> cases_;
  std::vector<Claim> claims_;
  std::vector<std::pair<std::string, std::string>> machine_;
  bool holds_ = true;
};

}  // namespace accrue::bench
