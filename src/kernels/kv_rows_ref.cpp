#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kv_rows.h"
#include "tensor/half.h"

namespace forebay::kv_rows_detail {
namespace {

/// Not finite in, not finite out: the first integer is then 1, and so is not lost to a product with 0.
void write_group(const float* x, int n, int8_t* q, uint16_t* scale) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  *scale = finite ? f16_from_f32(largest / 127.0f) : uint16_t{0x7e00};
  const float step = f32_from_f16(*scale);
  if (!std::isfinite(step) || step == 0) {
    std::fill(q, q + n, int8_t{0});
    q[0] = std::isfinite(step) ? 0 : 1;
    return;
  }
  for (int i = 0; i < n; ++i)
    q[i] = static_cast<int8_t>(std::clamp(std::nearbyint(x[i] / step), -127.0f, 127.0f));
}

}  // namespace

void write_dims_ref(const KvRows& rows, int64_t cell, int head, int n_dims, const float* x) {
  const int64_t at = cell * rows.width() + static_cast<int64_t>(head) * rows.head_dim;
  switch (rows.type) {
    case KvType::kF32:
      std::memcpy(rows.values + at * 4, x, static_cast<size_t>(n_dims) * 4);
      return;
    case KvType::kF16:
      for (int d = 0; d < n_dims; ++d) reinterpret_cast<uint16_t*>(rows.values)[at + d] = f16_from_f32(x[d]);
      return;
    case KvType::kBf16:
      for (int d = 0; d < n_dims; ++d) reinterpret_cast<uint16_t*>(rows.values)[at + d] = bf16_from_f32(x[d]);
      return;
    case KvType::kInt8: {
      uint16_t* scales =
          rows.scales + cell * rows.n_scales() + static_cast<int64_t>(head) * rows.groups_per_head();
      for (int d = 0, g = 0; d < n_dims; d += KvFormat::kGroupDims, ++g)
        write_group(x + d, std::min(KvFormat::kGroupDims, rows.head_dim - d),
                    reinterpret_cast<int8_t*>(rows.values) + at + d, scales + g);
      return;
    }
  }
}

void write_head_ref(const KvRows& rows, int64_t cell, int head, const float* x) {
  write_dims_ref(rows, cell, head, rows.head_dim, x);
}

void read_head_ref(const KvRows& rows, int64_t cell, int head, float* out) {
  const int64_t at = cell * rows.width() + static_cast<int64_t>(head) * rows.head_dim;
  switch (rows.type) {
    case KvType::kF32:
      std::memcpy(out, rows.values + at * 4, static_cast<size_t>(rows.head_dim) * 4);
      return;
    case KvType::kF16:
      for (int d = 0; d < rows.head_dim; ++d)
        out[d] = f32_from_f16(reinterpret_cast<const uint16_t*>(rows.values)[at + d]);
      return;
    case KvType::kBf16:
      for (int d = 0; d < rows.head_dim; ++d)
        out[d] = f32_from_bf16(reinterpret_cast<const uint16_t*>(rows.values)[at + d]);
      return;
    case KvType::kInt8: {
      const uint16_t* scales =
          rows.scales + cell * rows.n_scales() + static_cast<int64_t>(head) * rows.groups_per_head();
      for (int d = 0; d < rows.head_dim; ++d)
        out[d] = static_cast<float>(reinterpret_cast<const int8_t*>(rows.values)[at + d]) *
                 f32_from_f16(scales[d / KvFormat::kGroupDims]);
      return;
    }
  }
}

}  // namespace forebay::kv_rows_detail
