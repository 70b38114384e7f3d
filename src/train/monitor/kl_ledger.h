/// Where the gap between the sampler and the trainer comes from: a chain of views of the same tokens, each
/// with one more shortcut, and the mean difference of log-probs from each to the next. No torch.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay::train {

enum class ViewKind {
  kSamplerDense,  // the sampler's weights without its own shortcuts
  kSampler,       // the sampler as it ran
  kTrainerDense,  // the trainer's forward without codecs
  kBoundary,      // with the codecs up to and including one more boundary
  kStaleBasis,    // with the basis as it was, not as it would be if refreshed now
  kStale,         // with the weights that the sampler had, not today's
};
std::string_view name_of(ViewKind kind);

/// A view and how to get its log-probs: of the same tokens in the same order, each <= 0 or so. NaN marks a
/// token that the view has nothing to say about.
struct LedgerView {
  ViewKind kind = ViewKind::kSamplerDense;
  std::string name;  // "boundary 3"
  std::function<Result<std::vector<float>>()> log_probs;
};

/// From one view to the next.
struct LedgerTerm {
  std::string from, to;
  double mean = 0;     // mean_t[log p_from - log p_to], nats per token
  double error = 0;    // its standard error over tokens
  double largest = 0;  // |difference| of the worst token
};

struct KlLedger {
  std::vector<LedgerTerm> terms;
  double gap = 0;  // mean_t[log p_first - log p_last], computed on its own
  double sum = 0;  // of the terms
  int64_t n_tokens = 0;
  int64_t n_left_out = 0;  // tokens that some view had nothing to say about

  /// |sum - gap|: telescoping makes it rounding error.
  double residual() const;
};

/// The same tokens enter every term: one that any view lacks is left out everywhere. Errors: kInvalidArgument
/// for fewer than two views, views of different length, or no token left; kInternal if the terms do not add
/// up to 1e-6; those of the callbacks.
Result<KlLedger> make_ledger(std::span<const LedgerView> views);

/// A table of log-probs as text: one JSON object a line, {"view": NAME, "log_probs": [...]}, in the order of
/// the chain; null is NaN. Errors: kCorrupt with the line.
Result<std::vector<LedgerView>> parse_views(std::string_view text, std::string_view name);
std::string views_text(std::span<const LedgerView> views, std::span<const std::vector<float>> log_probs);

std::string ledger_table(const KlLedger& ledger);
std::string ledger_json(const KlLedger& ledger);

/// What a mean KL bounds: the total variation distance, and with it how far an entropy can be (Pinsker;
/// Fannes-Audenaert). nats; V is the size of the vocabulary.
double pinsker_distance(double kl);                             // sqrt(kl / 2), at most 1
double entropy_bound(double distance, double vocabulary_size);  // T ln(V - 1) + h(T)
/// The distance at which the bound reaches `entropy`: the inverse, for T up to 1 - 1 / V.
double distance_of_entropy(double entropy, double vocabulary_size);

}  // namespace forebay::train
