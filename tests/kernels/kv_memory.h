/// K/V rows with memory of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kv_rows.h"

namespace forebay::testing {

struct KvMemory {
  KvMemory(KvType type, int n_heads, int head_dim, int64_t n_cells) : rows{{type, n_heads, head_dim}} {
    values.resize(static_cast<size_t>(n_cells * rows.value_bytes()));
    scales.resize(static_cast<size_t>(n_cells * rows.n_scales()));
    rows.values = values.data();
    rows.scales = scales.data();
  }
  /// Filled with x, [cell][n_heads * head_dim].
  KvMemory(KvType type, int n_heads, int head_dim, const std::vector<float>& x, Isa isa = Isa::kReference)
      : KvMemory(type, n_heads, head_dim, static_cast<int64_t>(x.size()) / (n_heads * head_dim)) {
    const int64_t n_cells = static_cast<int64_t>(x.size()) / rows.width();
    write_rows(isa, rows, 0, {x.data(), n_cells, rows.width()});
  }
  KvMemory(const KvMemory&) = delete;

  KvRows rows;
  std::vector<std::byte> values;
  std::vector<uint16_t> scales;
};

}  // namespace forebay::testing
