#include "cli/sampling_flags.h"

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "core/parse.h"
#include "tokenizer/tokenizer.h"

namespace forebay::cli {
namespace {

constexpr NumberRange kFraction{0, 1};
constexpr NumberRange kBias{-1000, 1000};

/// Repetition of structure is no fault: these end a stretch that DRY compares.
const std::vector<std::string> kDefaultBreakers = {"\n", ":", "\"", "*"};

/// Every token whose text contains one of the texts.
std::vector<int32_t> tokens_containing(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.n_tokens(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id, /*specials=*/true);
    for (const std::string& text : texts)
      if (!text.empty() && bytes.find(text) != std::string_view::npos) {
        ids.push_back(id);
        break;
      }
  }
  return ids;
}

/// The flag's value over the model's, which is then the flag's.
template <typename T>
T settle(std::optional<T>& flag, T models) {
  if (!flag) flag = models;
  return *flag;
}

}  // namespace

void SamplingFlags::declare(FlagTable& flags) {
  flags.section("Choice of tokens, in the order it is applied (absent: the model's own)");
  flags.texts("--logit-bias", "ID=BIAS", logit_bias, "add BIAS to the logit of token ID; -inf bans it");
  flags.number("--repeat-penalty", "X", repeat_penalty, {0.01, 100},
               "above 1: divide positive and multiply negative logits of recent tokens; 1: off");
  flags.number("--presence-penalty", "X", presence_penalty, kBias,
               "subtract from the logit of every recent token; 0: off");
  flags.number("--frequency-penalty", "X", frequency_penalty, kBias,
               "subtract for every time that a token is among the recent ones; 0: off");
  flags.integer("--penalty-last-n", "N", penalty_last_n, {-1, 1 << 24},
                "tokens that count as recent; -1: all, 0: none");
  flags.number("--dry-multiplier", "X", dry_multiplier, {0, 1000},
               "above 0: penalise tokens that go on with a repetition; 0: off");
  flags.number("--dry-base", "X", dry_base, {1, 100}, "growth of that penalty per repeated token");
  flags.integer("--dry-allowed-length", "N", dry_allowed_length, {1, 1 << 20}, "longest free repetition");
  flags.integer("--dry-last-n", "N", dry_last_n, {-1, 1 << 24}, "tokens it looks back; -1: all, 0: none");
  flags.texts("--dry-breaker", "TEXT", dry_breakers,
              "tokens with this text end a repetition; absent: newline, colon, quote and star");
  flags.integer("--top-k", "N", top_k, {0, 1 << 24}, "keep the N most likely tokens; 0: all");
  flags.number("--typical", "P", typical, {1e-6, 1}, "keep the locally typical tokens of mass P; 1: all");
  flags.number("--top-p", "P", top_p, kFraction, "keep the most likely tokens of mass P; 1: all");
  flags.number("--min-p", "P", min_p, kFraction, "drop tokens below P times the likeliest; 0: none");
  flags.number("--temp", "T", temperature, {0, 100},
               "flatten (above 1) or sharpen; 0: always the likeliest token");
  flags.integer("--seed", "N", seed, {0, std::numeric_limits<int64_t>::max()},
                "same seed, same text; absent: a random one, printed at the end");
}

Result<std::pair<int32_t, float>> parse_logit_bias(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return Error{Code::kInvalidArgument, fmt::format("'{}' is not ID=BIAS", text)};
  const int64_t id = TRY(parse_int(text.substr(0, equals), 0, std::numeric_limits<int32_t>::max()));
  const std::string_view bias = text.substr(equals + 1);
  if (bias == "-inf") return std::pair(static_cast<int32_t>(id), -INFINITY);
  return std::pair(static_cast<int32_t>(id), static_cast<float>(TRY(parse_double(bias, -1e6, 1e6))));
}

Result<SamplingOptions> SamplingFlags::resolve(const Engine& engine) {
  SamplingOptions o = engine.info().sampling;
  for (const std::string& text : logit_bias) o.logit_bias.push_back(TRY(parse_logit_bias(text)));
  o.repeat_penalty = settle(repeat_penalty, o.repeat_penalty);
  o.presence_penalty = settle(presence_penalty, o.presence_penalty);
  o.frequency_penalty = settle(frequency_penalty, o.frequency_penalty);
  o.penalty_last_n = settle(penalty_last_n, o.penalty_last_n);
  o.dry_multiplier = settle(dry_multiplier, o.dry_multiplier);
  o.dry_base = settle(dry_base, o.dry_base);
  o.dry_allowed_length = settle(dry_allowed_length, o.dry_allowed_length);
  o.dry_last_n = settle(dry_last_n, o.dry_last_n);
  o.top_k = settle(top_k, o.top_k);
  o.typical_p = settle(typical, o.typical_p);
  o.top_p = settle(top_p, o.top_p);
  o.min_p = settle(min_p, o.min_p);
  o.temperature = settle(temperature, o.temperature);
  o.seed = settle(seed, uint64_t{std::random_device()()});
  if (o.dry_multiplier > 0 && engine.tokenizer() != nullptr)
    o.dry_breakers =
        tokens_containing(*engine.tokenizer(), dry_breakers.empty() ? kDefaultBreakers : dry_breakers);
  return o;
}

}  // namespace forebay::cli
