#include "synth/deck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "quant/quant.h"
#include "tensor/half.h"

namespace forebay::synth {
namespace {

constexpr uint64_t kMaxCardWeights = 256;
constexpr uint64_t kMinCards = 16, kMaxCards = 8192;
constexpr int kCardsPerWord = 4;  // 16 random bits choose a card

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const double mean = sum / static_cast<double>(values.size());
  return {mean, std::sqrt(std::max(0.0, squares / static_cast<double>(values.size()) - mean * mean))};
}

std::vector<float> decoded(DType type, const std::vector<std::byte>& blocks, uint64_t n) {
  std::vector<float> values(n);
  decode_row(type, blocks.data(), static_cast<int64_t>(n), values.data());
  return values;
}

/// Normal weights, encoded. Every card has the wanted mean exactly, so that what a row makes of a constant
/// input is known (statistics.h relies on it). Coarse formats change the deviation (Q2_0 keeps few weights,
/// far from 0), so the input is scaled until the output has the wanted one.
Result<std::vector<std::byte>> encoded_cards(DType type, uint64_t n, uint64_t card_weights,
                                             const Normal& wanted, Key key) {
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(n))));
  std::vector<float> values(n);
  double scale = 1;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t first = 0; first < n; first += card_weights) {
      const std::span<float> card = std::span(values).subspan(first, card_weights);
      for (uint64_t i = 0; i < card_weights; ++i) card[i] = key.normal(first + i);
      const double mean = moments(card).mean;
      for (float& v : card) v = static_cast<float>(wanted.mean + scale * wanted.deviation * (v - mean));
    }
    TRY(encode_row(type, values, blocks.data()));
    const double got = moments(decoded(type, blocks, n)).deviation;
    if (got > 0) scale *= wanted.deviation / got;
  }
  return blocks;
}

/// Where the block scale of a format without encoder is: IQ1_M spreads it over the top nibbles of four words.
void set_block_scale(DType type, std::byte* block, float scale) {
  const uint16_t half = f16_from_f32(scale);
  if (type != DType::kIQ1_M) {
    std::memcpy(block, &half, sizeof half);
    return;
  }
  for (int k = 0; k < 4; ++k) {
    uint16_t word = 0;
    std::memcpy(&word, block + 48 + 2 * k, sizeof word);
    word = static_cast<uint16_t>((word & 0x0fff) | (half >> 4 * k & 15) << 12);
    std::memcpy(block + 48 + 2 * k, &word, sizeof word);
  }
}

/// Random codes: in the codebook formats every code is legal, and signs are part of it.
std::vector<std::byte> random_cards(DType type, uint64_t n, const Normal& wanted, Key key) {
  const DTypeInfo& format = info(type);
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(n))));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(key.word(i) >> 56);
  const auto set_scales = [&](float scale) {
    for (size_t at = 0; at < blocks.size(); at += static_cast<size_t>(format.block_bytes))
      set_block_scale(type, blocks.data() + at, scale);
  };
  set_scales(1.0f);
  const double got = moments(decoded(type, blocks, n)).deviation;
  set_scales(static_cast<float>(wanted.deviation / got));
  return blocks;
}

}  // namespace

Result<Deck> Deck::make(DType type, uint64_t n_columns, uint64_t n_weights, const Normal& distribution,
                        Key key) {
  const Codec* codec = find_codec(type);
  const uint64_t card_weights = std::gcd(n_columns, kMaxCardWeights);
  if (codec == nullptr || card_weights % static_cast<uint64_t>(info(type).block_weights) != 0)
    return Error{Code::kInvalidArgument,
                 fmt::format("rows of {} weights cannot be of type {}", n_columns, name_of(type))};
  Deck deck;
  const uint64_t n_cards =
      std::clamp<uint64_t>(std::min(n_weights, kMaxWeights) / card_weights, kMinCards, kMaxCards);
  const uint64_t n = n_cards * card_weights;
  deck.cards_ = codec->encode != nullptr ? TRY(encoded_cards(type, n, card_weights, distribution, key))
                                         : random_cards(type, n, distribution, key);
  deck.cards_per_row_ = n_columns / card_weights;
  deck.card_bytes_ = deck.cards_.size() / n_cards;
  deck.mask_ = n_cards - 1;
  return deck;
}

void Deck::deal(Key key, uint64_t row, std::byte* out) const {
  const Key of_row = key.numbered(row);
  for (uint64_t i = 0; i < cards_per_row_; i += kCardsPerWord) {
    uint64_t word = of_row.word(i / kCardsPerWord);
    const uint64_t end = std::min<uint64_t>(i + kCardsPerWord, cards_per_row_);
    for (uint64_t card = i; card < end; ++card, word >>= 16, out += card_bytes_)
      std::memcpy(out, cards_.data() + (word & mask_) * card_bytes_, card_bytes_);
  }
}

}  // namespace forebay::synth
