/// Constants of the hashed n-gram embedding.
#pragma once

#include <cstdint>
#include <vector>

#include "convert/checkpoint.h"

namespace forebay::convert {

/// One odd 64-bit multiplier per token of an n-gram; one prime number of rows per hash head, and where each
/// head's rows begin in the table.
struct NgramHash {
  std::vector<uint64_t> multipliers;  // ngram_size
  std::vector<uint64_t> head_sizes, head_offsets;

  bool operator==(const NgramHash&) const = default;
};

/// Derived from seed, vocabulary and table base as the reference implementation does: multipliers from
/// SplitMix64, sizes the first primes not below the base.
NgramHash make_ngram_hash(const NgramConfig& config, uint64_t n_vocab);

/// Rows of the whole table: the heads' rows, padded.
uint64_t ngram_table_rows(const NgramConfig& config, uint64_t n_vocab);

/// The checkpoint's own constants when it carries them (what the weights were trained with), else the derived
/// ones. Errors: kCorrupt when lengths or offsets contradict the config.
Result<NgramHash> read_ngram_hash(Checkpoint& checkpoint, const CheckpointConfig& config);

}  // namespace forebay::convert
