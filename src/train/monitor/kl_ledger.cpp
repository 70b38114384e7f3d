#include "train/monitor/kl_ledger.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace forebay::train {
namespace {

constexpr double kMostResidual = 1e-6;

/// Neumaier's compensated sum: long lists of small differences keep their last digits.
class Sum {
 public:
  void add(double value) {
    const double next = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

LedgerTerm term_of(const std::vector<float>& from, const std::vector<float>& to,
                   const std::vector<size_t>& tokens) {
  const auto n = static_cast<double>(tokens.size());
  LedgerTerm term;
  Sum sum;
  for (const size_t t : tokens) {
    const double difference = static_cast<double>(from[t]) - static_cast<double>(to[t]);
    sum.add(difference);
    term.largest = std::max(term.largest, std::abs(difference));
  }
  term.mean = sum.value() / n;
  Sum squares;
  for (const size_t t : tokens) {
    const double off = static_cast<double>(from[t]) - static_cast<double>(to[t]) - term.mean;
    squares.add(off * off);
  }
  term.error =
      tokens.size() < 2 ? std::numeric_limits<double>::infinity() : std::sqrt(squares.value() / (n - 1) / n);
  return term;
}

}  // namespace

std::string_view name_of(ViewKind kind) {
  switch (kind) {
    case ViewKind::kSamplerDense:
      return "sampler dense";
    case ViewKind::kSampler:
      return "sampler";
    case ViewKind::kTrainerDense:
      return "trainer dense";
    case ViewKind::kBoundary:
      return "boundary";
    case ViewKind::kStaleBasis:
      return "stale basis";
    case ViewKind::kStale:
      return "stale weights";
  }
  return "unknown";
}

double KlLedger::residual() const {
  return std::abs(sum - gap);
}

Result<KlLedger> make_ledger(std::span<const LedgerView> views) {
  if (views.size() < 2)
    return Error{Code::kInvalidArgument, fmt::format("ledger: {} views, wanted at least 2", views.size())};
  std::vector<std::vector<float>> log_probs;
  for (const LedgerView& view : views) {
    log_probs.push_back(TRY(view.log_probs()));
    if (log_probs.back().size() != log_probs.front().size())
      return Error{Code::kInvalidArgument,
                   fmt::format("ledger: {} has {} tokens, {} has {}", view.name, log_probs.back().size(),
                               views[0].name, log_probs.front().size())};
  }
  std::vector<size_t> tokens;
  for (size_t t = 0; t < log_probs[0].size(); ++t)
    if (std::all_of(log_probs.begin(), log_probs.end(),
                    [t](const auto& view) { return std::isfinite(view[t]); }))
      tokens.push_back(t);
  if (tokens.empty())
    return Error{Code::kInvalidArgument, "ledger: no token that every view has a log-prob for"};
  KlLedger ledger;
  ledger.n_tokens = static_cast<int64_t>(tokens.size());
  ledger.n_left_out = static_cast<int64_t>(log_probs[0].size()) - ledger.n_tokens;
  for (size_t i = 1; i < views.size(); ++i) {
    LedgerTerm term = term_of(log_probs[i - 1], log_probs[i], tokens);
    term.from = views[i - 1].name;
    term.to = views[i].name;
    ledger.sum += term.mean;
    ledger.terms.push_back(std::move(term));
  }
  ledger.gap = term_of(log_probs.front(), log_probs.back(), tokens).mean;
  if (!(ledger.residual() <= kMostResidual))
    return Error{Code::kInternal,
                 fmt::format("ledger: the terms add up to {}, the gap is {}", ledger.sum, ledger.gap)};
  return ledger;
}

Result<std::vector<LedgerView>> parse_views(std::string_view text, std::string_view name) {
  std::vector<LedgerView> views;
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    const auto wrong = [&](std::string_view what) {
      return Error{Code::kCorrupt, fmt::format("{}:{}: {}", name, number, what)};
    };
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("view") || !json["view"].is_string())
      return wrong("no object with a \"view\"");
    if (!json.contains("log_probs") || !json["log_probs"].is_array()) return wrong("no \"log_probs\"");
    std::vector<float> values;
    for (const auto& value : json["log_probs"]) {
      if (!value.is_number() && !value.is_null()) return wrong("a log-prob that is no number");
      values.push_back(value.is_null() ? std::nanf("") : value.get<float>());
    }
    LedgerView view;
    view.name = json["view"].get<std::string>();
    view.log_probs = [values]() -> Result<std::vector<float>> { return values; };
    views.push_back(std::move(view));
  }
  return views;
}

std::string views_text(std::span<const LedgerView> views, std::span<const std::vector<float>> log_probs) {
  std::string out;
  for (size_t i = 0; i < views.size(); ++i) {
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const float value : log_probs[i])
      values.push_back(std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json());
    out += nlohmann::ordered_json{{"view", views[i].name}, {"log_probs", values}}.dump() + "\n";
  }
  return out;
}

std::string ledger_table(const KlLedger& ledger) {
  std::string out =
      fmt::format("{:<18} {:<18} {:>14} {:>12} {:>12}\n", "from", "to", "nats/token", "+-", "worst");
  for (const LedgerTerm& term : ledger.terms)
    out += fmt::format("{:<18} {:<18} {:>14.8f} {:>12.2e} {:>12.2e}\n", term.from, term.to, term.mean,
                       term.error, term.largest);
  return out + fmt::format("{:<37} {:>14.8f}\n{:<37} {:>14.8f} {:>12.2e}\n", "sum", ledger.sum,
                           fmt::format("gap over {} tokens", ledger.n_tokens), ledger.gap, ledger.residual());
}

std::string ledger_json(const KlLedger& ledger) {
  using Json = nlohmann::ordered_json;
  Json terms = Json::array();
  for (const LedgerTerm& term : ledger.terms)
    terms.push_back({{"from", term.from},
                     {"to", term.to},
                     {"mean", term.mean},
                     {"error", std::isfinite(term.error) ? Json(term.error) : Json()},
                     {"largest", term.largest}});
  return Json{{"terms", terms},
              {"sum", ledger.sum},
              {"gap", ledger.gap},
              {"residual", ledger.residual()},
              {"tokens", ledger.n_tokens},
              {"left_out", ledger.n_left_out}}
      .dump();
}

double pinsker_distance(double kl) {
  return std::min(1.0, std::sqrt(std::max(0.0, kl) / 2));
}

double entropy_bound(double distance, double vocabulary_size) {
  const double t = std::clamp(distance, 0.0, 1 - 1 / vocabulary_size);
  const auto part = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
  return t * std::log(vocabulary_size - 1) + part(t) + part(1 - t);
}

double distance_of_entropy(double entropy, double vocabulary_size) {
  double low = 0, high = 1 - 1 / vocabulary_size;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (entropy_bound(middle, vocabulary_size) < entropy ? low : high) = middle;
  }
  return low;
}

}  // namespace forebay::train
