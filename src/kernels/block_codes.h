/// An 8-bit copy of pooled keys with error bounds: which blocks can be among the best is read from a quarter
/// of the bytes, and only those are scored exactly. What is chosen is the same, to the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/isa.h"

namespace forebay {

/// A view. Keys are kept in tiles of sixteen:
///
///   codes   u8  [dim / 4 rounded up][16 keys][4]   64 + nearest of value / scale, which is within +-63
///   scale   f32 [16]
///   error   bf16 [16]   at least |key - scale * (code - 64)|, the Euclidean norm; infinite where a key is
///   not
///                       finite or very large: such a block is always looked at
///   length  bf16 [16]   at least |scale * (code - 64)|
struct BlockCodes {
  static constexpr int64_t kTile = 16;
  /// Sums of products stay exact as f32 up to here.
  static constexpr int kMaxDim = 1024;

  std::byte* tiles = nullptr;  // null: none are kept
  int dim = 0;

  static int64_t quads(int dim) { return (dim + 3) / 4; }
  static int64_t tile_bytes(int dim) { return kTile * (4 * quads(dim) + 8); }
  static int64_t n_tiles(int64_t n_blocks) { return (n_blocks + kTile - 1) / kTile; }
  std::byte* tile(int64_t i) const { return tiles + i * tile_bytes(dim); }
};

/// Codes of blocks [begin, end) of `pooled` [blocks][dim] f32.
void encode_blocks(const float* pooled, int64_t begin, int64_t end, const BlockCodes& to);

/// A query row, rounded: [n_heads][dim] -> heads in fours, missing ones zero.
struct CodedQuery {
  int n_heads = 0, dim = 0;
  std::vector<int8_t> codes;    // [heads / 4][quads][4 heads][4]
  std::vector<float> scale;     // per head
  std::vector<int32_t> offset;  // per head: 64 * sum of its codes
  // A score is within error * E + length * L + kTiny of what codes say, E and L a key's.
  float error = 0, length = 0;
  /// Where products are so small that they are not normal numbers.
  static constexpr float kTiny = std::numeric_limits<float>::min();

  void reserve(int n_heads, int dim);
};
/// False where the query is not finite, or so large or small that codes bound nothing.
bool encode_query(const float* q, int n_heads, int dim, CodedQuery& to);

/// low[b] <= what score_blocks gives for b <= high[b], for all blocks of tiles [begin, end) and every isa;
/// neither is NaN. low, high: [16 * end]. Bits do not depend on use_vnni.
void bound_scores(Isa isa, bool use_vnni, const CodedQuery& q, const BlockCodes& codes, int64_t begin,
                  int64_t end, float* low, float* high);

namespace block_codes_detail {
void bound_ref(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
               float* high);
void bound_avx2(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
                float* high);
void bound_vnni(const CodedQuery& q, const BlockCodes& codes, int64_t begin, int64_t end, float* low,
                float* high);
}  // namespace block_codes_detail

}  // namespace forebay
