/// Two things that act on a run while it goes on: how strongly the reference holds it, and a brake on the
/// learning rate. Both look at the dense view only, at the steps where it is probed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay::train {

/// What divergence from the reference a run may have at which step: the curve of a control without codecs,
/// times kappa; linear in between, flat outside. Never 0: a setpoint of 0 lets nothing be learnt.
class SetpointTable {
 public:
  /// "step, nats, step, nats, ...". Errors: kInvalidArgument for an odd count, steps that do not rise, a
  /// value that is not above 0, no point at all.
  static Result<SetpointTable> create(std::span<const double> points, double kappa);
  /// The points where kl_dense is above 0 in a control's metrics.jsonl. Errors: kCorrupt with the line; as
  /// create().
  static Result<SetpointTable> from_metrics(std::string_view jsonl, double kappa);

  double at(int64_t step) const;

 private:
  std::map<double, double> points_;
};

struct ControllerOptions {
  double eta = 0.05;  // per nat and probe
  double beta_min = 1e-4;
  double beta_max = 1e-1;
};

/// Projected dual ascent: beta += eta (kl_dense - setpoint), kept within its bounds; at a bound nothing
/// accumulates. Source: the multiplier's update of constrained optimisation, as in arXiv:2606.08779.
class BetaController {
 public:
  BetaController(const ControllerOptions& options, SetpointTable table, double beta);
  /// At a probe.
  void update(int64_t step, double kl_dense);
  double beta() const { return beta_; }
  void restore(double beta) { beta_ = beta; }

 private:
  ControllerOptions options_;
  SetpointTable table_;
  double beta_;
};

struct BrakeOptions {
  double factor = 0.5;
  double over_median = 3;  // brakes when |gap_dense| is above this many times its running median
  double floor = 1e-3;     // nats: a gap below is rounding
};

/// The learning rate is multiplied by factor for one interval between probes.
class LrBrake {
 public:
  explicit LrBrake(const BrakeOptions& options) : options_(options) {}
  /// At a probe: compares with the probes before, then remembers.
  void update(double gap_dense);
  double scale() const { return braking_ ? options_.factor : 1; }
  int64_t n_fired() const { return n_fired_; }

  struct State {
    std::vector<double> gaps;
    bool braking = false;
    int64_t n_fired = 0;
  };
  State state() const { return {gaps_, braking_, n_fired_}; }
  void restore(State state);

 private:
  BrakeOptions options_;
  std::vector<double> gaps_;
  bool braking_ = false;
  int64_t n_fired_ = 0;
};

}  // namespace forebay::train
