#include "model/recurrent_copy.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay {
namespace {

std::vector<float> copy_of(std::span<const float> part) {
  return {part.begin(), part.end()};
}

void write(const std::vector<float>& from, std::span<float> to) {
  ENSURE(from.size() == to.size(), "a recurrent copy of another model");
  std::copy(from.begin(), from.end(), to.begin());
}

}  // namespace

RecurrentCopy RecurrentCopy::of(SequenceState& state, const ModelConfig& config) {
  RecurrentCopy copy;
  for (int i = 0; i < config.n_blocks; ++i) {
    copy.matrices.push_back(copy_of(state.gated_delta(i).matrix));
    copy.conv.push_back(copy_of(state.gated_delta(i).conv));
    copy.raw_keys.push_back(copy_of(state.attention(i).raw));
  }
  copy.ngram_conv = copy_of(state.ngram_conv());
  return copy;
}

void RecurrentCopy::write_sums(SequenceState& state) const {
  for (int i = 0; i < static_cast<int>(matrices.size()); ++i) {
    write(matrices[i], state.gated_delta(i).matrix);
    write(conv[i], state.gated_delta(i).conv);
  }
  write(ngram_conv, state.ngram_conv());
}

void RecurrentCopy::write_raw_keys(SequenceState& state, const ModelConfig& config,
                                   const CellMove& move) const {
  const int64_t dim = config.indexer.head_dim;
  const int64_t end = move.first + move.n;
  for (int i = 0; i < static_cast<int>(raw_keys.size()); ++i) {
    if (raw_keys[i].empty()) continue;
    const std::span<float> ring = state.attention(i).raw;
    for (int64_t cell = std::max(move.first, end - AttentionState::kRawRing); cell < end; ++cell)
      std::copy_n(raw_keys[i].begin() + cell % AttentionState::kRawRing * dim, dim,
                  ring.begin() + (cell + move.delta) % AttentionState::kRawRing * dim);
  }
}

}  // namespace forebay
