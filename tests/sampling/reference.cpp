#include "reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace forebay::reference {
namespace {

std::vector<int32_t> last(const std::vector<int32_t>& recent, int n) {
  if (n < 0) return recent;
  const size_t skip = recent.size() - std::min(recent.size(), static_cast<size_t>(n));
  return {recent.begin() + static_cast<ptrdiff_t>(skip), recent.end()};
}

struct Token {
  int32_t id;
  double logit;
  double p = 0;
};

void softmax(std::vector<Token>& tokens, double temperature) {
  double best = -INFINITY, total = 0;
  for (const Token& token : tokens) best = std::max(best, token.logit);
  for (Token& token : tokens) total += token.p = std::exp((token.logit - best) / temperature);
  for (Token& token : tokens) token.p /= total;
}

bool likelier(const Token& a, const Token& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Keeps the shortest prefix of the given order with the given mass.
void keep_mass(std::vector<Token>& tokens, double mass, double& margin) {
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    sum += tokens[i].p;
    if (i + 1 < tokens.size()) margin = std::min(margin, std::abs(sum - mass));
    if (sum >= mass) {
      tokens.resize(i + 1);
      return;
    }
  }
}

}  // namespace

void apply_penalties(std::vector<float>& logits, const std::vector<int32_t>& recent,
                     const SamplingOptions& options) {
  std::map<int32_t, int> counts;
  for (const int32_t id : last(recent, options.penalty_last_n)) ++counts[id];
  for (const auto& [id, count] : counts) {
    if (logits[id] > 0)
      logits[id] /= options.repeat_penalty;
    else
      logits[id] *= options.repeat_penalty;
    logits[id] -= options.presence_penalty + options.frequency_penalty * static_cast<float>(count);
  }
}

void apply_dry(std::vector<float>& logits, const std::vector<int32_t>& recent,
               const SamplingOptions& options) {
  const std::vector<int32_t> tokens = last(recent, options.dry_last_n);
  const std::set<int32_t> breakers(options.dry_breakers.begin(), options.dry_breakers.end());
  std::map<int32_t, int> longest;
  const int n = static_cast<int>(tokens.size());
  for (int next = 1; next < n; ++next) {  // tokens[next] was once chosen after tokens[0..next)
    int length = 0;
    while (length < next && tokens[next - 1 - length] == tokens[n - 1 - length] &&
           !breakers.contains(tokens[n - 1 - length]))
      ++length;
    int& entry = longest[tokens[next]];
    entry = std::max(entry, length);
  }
  for (const auto& [id, length] : longest)
    if (length >= options.dry_allowed_length && !breakers.contains(id))
      logits[id] -= static_cast<float>(options.dry_multiplier *
                                       std::pow(options.dry_base, length - options.dry_allowed_length));
}

Answer make_distribution(const std::vector<float>& logits, const SamplingOptions& options) {
  Answer answer;
  std::vector<Token> tokens;
  for (size_t id = 0; id < logits.size(); ++id)
    if (std::isfinite(logits[id])) tokens.push_back({static_cast<int32_t>(id), logits[id]});
  if (tokens.empty()) return answer;
  std::sort(tokens.begin(), tokens.end(), likelier);
  if (options.top_k > 0) tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.top_k)));

  if (options.typical_p < 1) {
    softmax(tokens, 1);
    double entropy = 0;
    for (const Token& token : tokens)
      if (token.p > 0) entropy -= token.p * std::log(token.p);
    double best = tokens[0].logit, log_total = 0;
    for (const Token& token : tokens) log_total += std::exp(token.logit - best);
    log_total = std::log(log_total);
    const auto distance = [&](const Token& token) {
      return std::abs(log_total - (token.logit - best) - entropy);
    };
    std::stable_sort(tokens.begin(), tokens.end(), [&](const Token& a, const Token& b) {
      // Equal logits must tie exactly, whatever the rounding.
      return a.logit != b.logit && distance(a) < distance(b);
    });
    for (size_t i = 1; i < tokens.size(); ++i)
      if (tokens[i].logit != tokens[i - 1].logit)
        answer.margin = std::min(answer.margin, std::abs(distance(tokens[i]) - distance(tokens[i - 1])));
    keep_mass(tokens, options.typical_p, answer.margin);
    std::sort(tokens.begin(), tokens.end(), likelier);
  }
  if (options.top_p < 1) {
    softmax(tokens, 1);
    keep_mass(tokens, options.top_p, answer.margin);
  }
  if (options.min_p > 0) {
    softmax(tokens, 1);
    const double p_max = tokens[0].p;
    for (const Token& token : tokens)
      if (token.p != p_max)
        answer.margin = std::min(answer.margin, std::abs(token.p / p_max - options.min_p));
    std::erase_if(tokens, [&](const Token& token) { return token.p < options.min_p * p_max; });
  }
  if (options.temperature == 0) tokens.resize(1);
  softmax(tokens, options.temperature == 0 ? 1 : options.temperature);
  for (const Token& token : tokens) {
    answer.distribution.ids.push_back(token.id);
    answer.distribution.probabilities.push_back(token.p);
  }
  return answer;
}

}  // namespace forebay::reference
