/// The distance between two configurations of a model, in nats: KL(reference || candidate) of the next-token
/// distributions, position by position over the same text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "forebay/engine.h"
#include "forebay/result.h"

namespace forebay {

/// sum_i p_i (log p_i - log q_i) with p, q the softmax of the logits; f64. Zero when the bits are equal.
double kl_divergence(std::span<const float> reference, std::span<const float> candidate);

struct EvalText {
  std::string domain;  // a label, usually the file's name
  std::string text;    // special tokens are parsed; <|endoftext|> separates documents
};

struct KldOptions {
  int64_t window_tokens =
      512;                 // a document is cut into windows of this many tokens, each from an empty state
  int64_t max_tokens = 0;  // per text; 0 = all
  bool step = false;       // the candidate reads token by token, as it decodes: for what depends on the cache
  uint64_t bootstrap_seed = 1;
};

struct KldSummary {
  std::string domain;
  int64_t n_tokens = 0;
  int64_t n_windows = 0;
  double mean = 0, p90 = 0, p99 = 0, max = 0;
  double ci_low = 0, ci_high = 0;               // 95 % of the mean, bootstrap over windows
  double top1 = 0;                              // share of positions with the same most likely token
  double reference_nll = 0, candidate_nll = 0;  // nats per token of the text itself
};

/// A position whose most likely token changed.
struct KldFlip {
  std::string domain;
  int64_t token = 0;  // index in the text's tokens
  int32_t reference_id = 0, candidate_id = 0;
  double kld = 0;
};

struct KldReport {
  KldSummary total;
  std::vector<KldSummary> by_domain;
  std::vector<KldFlip> flips;  // largest divergence first
};

/// Errors: kInvalidArgument when vocabularies differ or a text has no two tokens; those of the forward
/// passes.
Result<KldReport> measure_kld(Engine& reference, Engine& candidate, std::span<const EvalText> texts,
                              const KldOptions& options,
                              const std::function<void(int64_t done, int64_t total)>& progress,
                              std::stop_token stop);

}  // namespace forebay
