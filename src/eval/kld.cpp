#include "eval/kld.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "eval/text_span.h"
#include "model/model.h"
#include "sampling/sampling.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

struct Position {
  double kld;
  double reference_nll, candidate_nll;
  bool same_top;
};

double nll(std::span<const float> logits, int32_t id) {
  return -log_prob(logits, id);
}

/// The candidate's logits of one window, [tokens][vocabulary].
Result<void> window_logits(Engine& engine, SequenceState& state, std::span<const int32_t> ids,
                           int64_t max_window, std::vector<float>& out) {
  Model& model = engine.model();
  const int64_t V = model.config().n_vocab;
  out.resize(ids.size() * V);
  state.reset();
  for (size_t first = 0; first < ids.size(); first += max_window) {
    const size_t n = std::min<size_t>(max_window, ids.size() - first);
    const Span span = text_span(model, state, ids, first, n);
    const ForwardOutput output = TRY(model.forward({&span, 1}));
    std::copy(output.logits.data, output.logits.data + n * V, out.begin() + first * V);
  }
  return {};
}

double quantile(std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

/// 95 % interval of the mean by resampling whole windows: positions within one are not independent.
void bootstrap(const std::vector<std::vector<Position>>& windows, uint64_t seed, KldSummary& s) {
  constexpr int kResamples = 1000;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<size_t> pick(0, windows.size() - 1);
  std::vector<std::pair<double, int64_t>> sums;
  for (const auto& window : windows) {
    double sum = 0;
    for (const Position& p : window) sum += p.kld;
    sums.emplace_back(sum, static_cast<int64_t>(window.size()));
  }
  std::vector<double> means;
  for (int r = 0; r < kResamples; ++r) {
    double sum = 0;
    int64_t n = 0;
    for (size_t i = 0; i < windows.size(); ++i) {
      const auto& [s_i, n_i] = sums[pick(random)];
      sum += s_i;
      n += n_i;
    }
    means.push_back(sum / static_cast<double>(n));
  }
  std::sort(means.begin(), means.end());
  s.ci_low = quantile(means, 0.025);
  s.ci_high = quantile(means, 0.975);
}

KldSummary summarise(std::string domain, const std::vector<std::vector<Position>>& windows, uint64_t seed) {
  KldSummary s;
  s.domain = std::move(domain);
  s.n_windows = static_cast<int64_t>(windows.size());
  std::vector<double> all;
  int64_t same = 0;
  for (const auto& window : windows)
    for (const Position& p : window) {
      all.push_back(p.kld);
      same += p.same_top;
      s.reference_nll += p.reference_nll;
      s.candidate_nll += p.candidate_nll;
    }
  s.n_tokens = static_cast<int64_t>(all.size());
  const auto n = static_cast<double>(all.size());
  for (double k : all) s.mean += k / n;
  s.reference_nll /= n;
  s.candidate_nll /= n;
  s.top1 = static_cast<double>(same) / n;
  std::sort(all.begin(), all.end());
  s.p90 = quantile(all, 0.90);
  s.p99 = quantile(all, 0.99);
  s.max = all.back();
  bootstrap(windows, seed, s);
  s.sorted = std::move(all);
  return s;
}

}  // namespace

double kl_divergence(std::span<const float> p, std::span<const float> q) {
  double max_p = -INFINITY, max_q = -INFINITY;
  for (float x : p) max_p = std::max<double>(max_p, x);
  for (float x : q) max_q = std::max<double>(max_q, x);
  double sum_p = 0, sum_q = 0;
  for (float x : p) sum_p += std::exp(x - max_p);
  for (float x : q) sum_q += std::exp(x - max_q);
  const double log_z_p = max_p + std::log(sum_p), log_z_q = max_q + std::log(sum_q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - log_z_p;
    kl += std::exp(log_p) * (log_p - (q[i] - log_z_q));
  }
  // Rounding can leave a tiny negative sum where the two agree.
  return std::max(kl, 0.0);
}

Result<std::vector<KldWindow>> cut_windows(const Engine& engine, std::span<const EvalText> texts,
                                           const KldOptions& o) {
  if (o.window_tokens < 2)
    return Error{Code::kInvalidArgument,
                 fmt::format("window: {} tokens, expected at least 2", o.window_tokens)};
  std::vector<KldWindow> windows;
  const Tokenizer* tokenizer = engine.tokenizer();
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> ids = TRY(engine.tokenize(texts[i].text));
    if (o.max_tokens > 0 && static_cast<int64_t>(ids.size()) > o.max_tokens) ids.resize(o.max_tokens);
    if (ids.size() < 2)
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: {} tokens, expected at least 2", texts[i].domain, ids.size())};
    const std::optional<TokenId> separator = tokenizer->find_special("<|endoftext|>");
    KldWindow window{i, 0, {}};
    for (size_t t = 0; t < ids.size(); ++t) {
      window.ids.push_back(ids[t]);
      const bool document_ends = separator && ids[t] == *separator;
      if (document_ends || static_cast<int64_t>(window.ids.size()) == o.window_tokens ||
          t + 1 == ids.size()) {
        if (window.ids.size() > 1) windows.push_back(window);
        window = {i, static_cast<int64_t>(t) + 1, {}};
      }
    }
  }
  return windows;
}

Result<KldReport> measure_kld(KldReference& reference, Engine& candidate, std::span<const EvalText> texts,
                              std::span<const KldWindow> windows, const KldOptions& options,
                              const std::function<void(int64_t, int64_t)>& progress, std::stop_token stop) {
  const int64_t V = reference.engine().info().n_vocab;
  if (candidate.info().n_vocab != V)
    return Error{Code::kInvalidArgument, fmt::format("{}: {} tokens in the vocabulary, the reference has {}",
                                                     candidate.info().path, candidate.info().n_vocab, V)};
  int64_t total = 0, done = 0, longest = 0;
  for (const KldWindow& w : windows) {
    total += static_cast<int64_t>(w.ids.size()) - 1;
    longest = std::max(longest, static_cast<int64_t>(w.ids.size()));
  }

  SequenceState candidate_state = TRY(candidate.model().new_state(longest));
  std::vector<float> p, q;
  std::vector<std::vector<std::vector<Position>>> by_text(texts.size());
  KldReport report;
  for (const KldWindow& window : windows) {
    if (stop.stop_requested())
      return Error{Code::kCancelled, fmt::format("kld: cancelled at {} of {} tokens", done, total)};
    TRY(reference.read(window, p));
    TRY(window_logits(candidate, candidate_state, window.ids,
                      options.step ? 1 : candidate.model().max_window(), q));
    std::vector<Position> positions;
    // The last token's distribution has no successor in the window.
    for (size_t t = 0; t + 1 < window.ids.size(); ++t) {
      const std::span<const float> pt(p.data() + t * V, V), qt(q.data() + t * V, V);
      const int32_t top_p = argmax(pt), top_q = argmax(qt);
      positions.push_back(
          {kl_divergence(pt, qt), nll(pt, window.ids[t + 1]), nll(qt, window.ids[t + 1]), top_p == top_q});
      if (top_p != top_q)
        report.flips.push_back({texts[window.text].domain, window.first + static_cast<int64_t>(t) + 1, top_p,
                                top_q, positions.back().kld});
    }
    by_text[window.text].push_back(std::move(positions));
    done += static_cast<int64_t>(window.ids.size()) - 1;
    if (progress) progress(done, total);
  }

  TRY(reference.finish());

  std::vector<std::vector<Position>> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (by_text[i].empty()) continue;
    report.by_domain.push_back(summarise(texts[i].domain, by_text[i], options.bootstrap_seed));
    all.insert(all.end(), by_text[i].begin(), by_text[i].end());
  }
  if (all.empty()) return Error{Code::kInvalidArgument, "kld: no document has two tokens"};
  report.total = summarise("all", all, options.bootstrap_seed);
  std::stable_sort(report.flips.begin(), report.flips.end(),
                   [](const KldFlip& a, const KldFlip& b) { return a.kld > b.kld; });
  return report;
}

}  // namespace forebay
