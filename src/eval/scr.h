/// What reusing rows after an edit in the middle costs and saves: [A B C] becomes [A B' C], and D follows.
/// Every variant is compared with the run that reads A B' C afresh, position by position over D.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "forebay/engine.h"
#include "forebay/result.h"

#include "reuse/staleness.h"

namespace forebay {

struct ScrSpans {
  std::vector<int32_t> a, b, b_new, c;
  std::vector<int32_t> d;  // what follows; may be empty
};

struct ScrOptions {
  std::vector<int64_t> junctions = {0, 8, 16};  // tokens of C that are computed again
  int64_t min_positions = 64;  // a shorter D is continued with the fresh run's likeliest tokens
  int64_t n_generate = 256;    // greedy tokens after D's first, for the repetitions; 0: none
};

struct ScrRow {
  std::string variant;   // "keep", "keep + transport", "exact-state", "lossy"; "fresh", "sanity", "no pads"
  int64_t junction = 0;  // after rounding
  double mean = 0, p90 = 0, max = 0;  // nats, KL(fresh || variant) over D
  double top1 = 0;                    // share of positions with the same likeliest token
  double perplexity = 0;              // of D
  double seconds = 0;                 // of the edit
  double speedup = 0;                 // over the fresh run from the end of A
  int64_t n_prefilled = 0;            // tokens that the edit computed
  int64_t n_repeated = 0;             // 4-grams of the generated tokens that had been there before
};

struct ScrReport {
  int64_t n_a = 0, n_b = 0, n_b_new = 0, n_pads = 0, n_c = 0, n_d = 0;
  std::vector<ScrRow> rows;
  /// Over C less the first junction, with the differences known. Empty for a model without recurrent layers.
  Staleness staleness;
  uint64_t log_bytes = 0;  // what was kept of the recurrences of C to transport
};

/// Errors: kInvalidArgument when C is empty or everything does not fit the engine's context; those of the
/// forward passes.
Result<ScrReport> measure_scr(Engine& engine, const ScrSpans& spans, const ScrOptions& options,
                              const std::function<void(int64_t done, int64_t total)>& progress,
                              std::stop_token stop);

/// What gnuplot is told: how many heads have which half-life, one bar per doubling, writing a PNG to
/// `output`.
std::string half_life_script(const Staleness& staleness, const std::string& title, const std::string& output);

}  // namespace forebay
