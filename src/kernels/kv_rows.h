/// Rows of keys or values, one per cell of a sequence, in one of several precisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "forebay/kv.h"

#include "kernels/isa.h"
#include "tensor/view.h"

namespace forebay {

/// What one row is, without its memory.
struct KvFormat {
  /// Dimensions of a head that share a scale; the last group of a head may be shorter.
  static constexpr int kGroupDims = 64;

  KvType type = KvType::kF32;
  int n_heads = 0;
  int head_dim = 0;

  int64_t width() const { return static_cast<int64_t>(n_heads) * head_dim; }
  int64_t element_bytes() const { return type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2; }
  /// Of a cell's values, scales apart.
  int64_t value_bytes() const { return width() * element_bytes(); }
  int groups_per_head() const { return (head_dim + kGroupDims - 1) / kGroupDims; }
  /// Of a cell; 0 unless kInt8.
  int64_t n_scales() const {
    return type == KvType::kInt8 ? static_cast<int64_t>(n_heads) * groups_per_head() : 0;
  }
};

/// A view: values [cell][head][dim] and, for kInt8, scales [cell][head][group], each one contiguous array, so
/// that a range of cells is two ranges of bytes.
///
/// kInt8: scale = half(amax / 127) of the group, q = rint(x / scale) within +-127, the value is q * scale. A
/// group that holds a value that is not finite, or too large for a scale, reads as not finite in its first
/// value.
struct KvRows : KvFormat {
  std::byte* values = nullptr;
  uint16_t* scales = nullptr;

  bool empty() const { return values == nullptr; }
  std::span<std::byte> value_bytes_of(int64_t first_cell, int64_t n_cells) const {
    return {values + first_cell * value_bytes(), static_cast<size_t>(n_cells * value_bytes())};
  }
  std::span<uint16_t> scales_of(int64_t first_cell, int64_t n_cells) const {
    return {scales + first_cell * n_scales(), static_cast<size_t>(n_cells * n_scales())};
  }
};

/// Writes x_TW (rotated already; W = width) to cells [first_cell, first_cell + T). Every version gives the
/// same bits.
void write_rows(Isa isa, const KvRows& rows, int64_t first_cell, TensorView<const float> x_TW);

/// One head of one cell as head_dim floats: exactly what was kept.
void read_head(Isa isa, const KvRows& rows, int64_t cell, int head, float* out);

/// Writes dimensions [0, n_dims) of one head again, with those that share their last scale; x is the whole
/// head.
void rewrite_head(const KvRows& rows, int64_t cell, int head, int n_dims, const float* x);

namespace kv_rows_detail {
void write_dims_ref(const KvRows& rows, int64_t cell, int head, int n_dims, const float* x);
void write_head_ref(const KvRows& rows, int64_t cell, int head, const float* x);
void write_head_avx2(const KvRows& rows, int64_t cell, int head, const float* x);
void read_head_ref(const KvRows& rows, int64_t cell, int head, float* out);
void read_head_avx2(const KvRows& rows, int64_t cell, int head, float* out);
}  // namespace kv_rows_detail

}  // namespace forebay
