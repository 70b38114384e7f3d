#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/block_codes.h"

namespace forebay::block_codes_detail {

void bound_ref(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
               float* high) {
  constexpr int64_t kTile = BlockCodes::kTile;
  const int64_t quads = BlockCodes::quads(q.dim);
  for (int64_t b = begin * kTile; b < end * kTile; ++b) {
    const int64_t lane = b % kTile;
    const std::byte* tile = codes.tile(b / kTile);
    float sum = 0;
    for (int h = 0; h < q.n_heads; ++h) {
      int32_t dot = -q.offset[h];
      for (int d = 0; d < 4 * quads; ++d)
        dot += static_cast<int32_t>(tile[(d / 4 * kTile + lane) * 4 + d % 4]) *
               q.codes[(h / 4 * quads + d / 4) * 16 + h % 4 * 4 + d % 4];
      sum += std::max(static_cast<float>(dot) * q.scale[h], 0.0f);
    }
    const std::byte* numbers = tile + 4 * kTile * quads;
    float scale = 0;
    uint16_t error = 0, length = 0;
    std::memcpy(&scale, numbers + 4 * lane, 4);
    std::memcpy(&error, numbers + 4 * kTile + 2 * lane, 2);
    std::memcpy(&length, numbers + 6 * kTile + 2 * lane, 2);
    const auto number = [](uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); };
    const float score = sum * scale;
    const float away = q.error * number(error) + (q.length * number(length) + CodedQuery::kTiny);
    low[b] = score - away;
    high[b] = score + away;
  }
}

}  // namespace forebay::block_codes_detail
