/// How fast a plan will run: what one token moves, over how fast the machine moves it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/model_footprint.h"

namespace forebay {

/// Share of expert requests that find their expert in memory, as a function of the share of experts that fit.
///
/// The first arriving slots hold the most wanted experts, so such curves bend down: a straight line between
/// measured points promises too little rather than too much.
class HitCurve {
 public:
  struct Point {
    double resident = 0;
    double hits = 0;
  };

  /// Points between (0, 0) and (1, 1), ascending in both; those two are added.
  HitCurve(std::vector<Point> points, std::string source);

  /// 24 % resident give 82 % hits: published for a trained model of 512 experts per block, top 10, under an
  /// LRU-like policy and no other help.
  static HitCurve published();

  double hits(double resident_share) const;
  const std::string& source() const { return source_; }

 private:
  std::vector<Point> points_;
  std::string source_;
};

/// Bytes per second.
struct MachineRates {
  double disk = 0;    // reads of an expert's size, several in flight
  double memory = 0;  // reading, all threads
  /// Weights of a type through a matrix product with one row, all threads. Types that are not in it: as
  /// memory.
  std::map<DType, double> kernels;
  std::string disk_source;  // "measured: 8 reads of 450 KiB in flight"
  std::string memory_source;

  double of_weights(DType type) const;
};

/// For where nothing can be measured: an ordinary NVMe drive and two channels of memory, and said to be that.
MachineRates assumed_rates();

/// One token of decoding.
///
/// The router of a block must have run before its experts can be read, so reads overlap with the experts that
/// are there and not with the trunk: seconds = trunk + max(disk, experts).
struct Speed {
  double resident_share = 1;
  double hit_rate = 1;
  uint64_t cold_bytes = 0;    // read from disk when no expert is in memory
  uint64_t disk_bytes = 0;    // expected to be read
  uint64_t trunk_bytes = 0;   // touched in memory: trunk and state
  uint64_t expert_bytes = 0;  // touched in memory: the experts in use
  double disk_seconds = 0;
  double trunk_seconds = 0;
  double expert_seconds = 0;

  double seconds_per_token() const;
  double tokens_per_second() const { return 1 / seconds_per_token(); }
  /// "disk", "experts" or "trunk": where most of the time goes.
  std::string_view bound() const;
};

/// What a plan keeps in memory beside the trunk, in bytes.
struct HeldBytes {
  uint64_t arena = 0;        // of experts
  uint64_t ngram_rows = 0;   // of the table
  uint64_t state_fixed = 0;  // read and written for a token
  uint64_t state_rows = 0;   // read for a token
};

Speed estimate_speed(const ModelFootprint& model, const HeldBytes& held, const MachineRates& rates,
                     const HitCurve& curve);

}  // namespace forebay
