#include "convert/ngram_hash.h"

#include <fmt/format.h>

namespace forebay::convert {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

uint64_t split_mix_64(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

bool is_prime(uint64_t n) {
  if (n < 2) return false;
  for (uint64_t divisor = 2; divisor * divisor <= n; ++divisor)
    if (n % divisor == 0) return false;
  return true;
}

std::vector<uint64_t> running_sum(const std::vector<uint64_t>& sizes) {
  std::vector<uint64_t> offsets;
  uint64_t sum = 0;
  for (const uint64_t size : sizes) {
    offsets.push_back(sum);
    sum += size;
  }
  return offsets;
}

}  // namespace

NgramHash make_ngram_hash(const NgramConfig& config, uint64_t n_vocab) {
  NgramHash hash;
  // Bounded so that token id times multiplier stays below 2^63.
  const uint64_t bound = std::max<uint64_t>(1, (INT64_MAX / n_vocab) / 2);
  for (uint64_t i = 0; i < config.ngram_size; ++i)
    hash.multipliers.push_back(2 * (split_mix_64(config.seed + kGolden * (i + 1)) % bound) + 1);
  for (uint64_t candidate = config.vocab_base; hash.head_sizes.size() < config.n_heads(); ++candidate)
    if (is_prime(candidate)) hash.head_sizes.push_back(candidate);
  hash.head_offsets = running_sum(hash.head_sizes);
  return hash;
}

uint64_t ngram_table_rows(const NgramConfig& config, uint64_t n_vocab) {
  const NgramHash hash = make_ngram_hash(config, n_vocab);
  const uint64_t rows = hash.head_offsets.back() + hash.head_sizes.back();
  return (rows + config.row_multiple - 1) / config.row_multiple * config.row_multiple;
}

Result<NgramHash> read_ngram_hash(Checkpoint& checkpoint, const CheckpointConfig& config) {
  const NgramConfig& n = config.ngram;
  const std::string prefix = fmt::format("layers.{}.ple.ple_embedding.", n.block);
  const NgramHash derived = make_ngram_hash(n, config.n_vocab);
  if (!checkpoint.has(prefix + "layer_multipliers")) return derived;

  NgramHash stored;
  stored.multipliers = TRY(checkpoint.take_integers(prefix + "layer_multipliers"));
  stored.head_sizes = TRY(checkpoint.take_integers(prefix + "ngram_heads_vocab_sizes"));
  stored.head_offsets = TRY(checkpoint.take_integers(prefix + "ngram_heads_offsets"));
  const auto wrong = [&](std::string_view name, std::string_view wanted) {
    return Error{Code::kCorrupt, fmt::format("tensor {}: wanted {}",
                                             checkpoint.full_name(prefix + std::string(name)), wanted)};
  };
  if (stored.multipliers.size() != n.ngram_size)
    return wrong("layer_multipliers", fmt::format("{} values, one per token of an n-gram", n.ngram_size));
  if (stored.head_sizes != derived.head_sizes)
    return wrong("ngram_heads_vocab_sizes",
                 fmt::format("the first {} primes from {}", n.n_heads(), n.vocab_base));
  if (stored.head_offsets != derived.head_offsets)
    return wrong("ngram_heads_offsets", "the running sum of the heads' sizes");
  return stored;
}

}  // namespace forebay::convert
