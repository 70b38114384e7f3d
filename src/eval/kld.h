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

#include "core/storage.h"
#include "eval/reference.h"

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
  std::vector<double> sorted;                   // every position's divergence, smallest first
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

/// The texts' documents in pieces of at most window_tokens. A window never spans documents: <|endoftext|>
/// ends one and is its last token. Errors: kInvalidArgument for a text or a window below two tokens.
Result<std::vector<KldWindow>> cut_windows(const Engine& engine, std::span<const EvalText> texts,
                                           const KldOptions& options);

/// Errors: kInvalidArgument when vocabularies differ; kCancelled; those of the forward passes.
Result<KldReport> measure_kld(KldReference& reference, Engine& candidate, std::span<const EvalText> texts,
                              std::span<const KldWindow> windows, const KldOptions& options,
                              const std::function<void(int64_t done, int64_t total)>& progress,
                              std::stop_token stop);

/// How many positions are above a divergence, text by text, as a picture. Errors: those of draw_png.
Result<void> plot_kld(Storage& storage, const KldReport& report, const Path& path);

}  // namespace forebay
