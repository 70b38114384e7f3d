// Four queries and two cells, or four queries and sixteen dimensions, at a time: eight sums in registers. A
// score is one vector of eight sums over the dimensions in order, added across in one fixed tree; a dimension
// of the output is one sum over the cells in order. What stands beside it in the registers changes no bit.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/attention.h"
#include "kernels/simd_avx2.h"
#include "kernels/transpose_avx2.h"

namespace forebay::attention_detail {
namespace {

constexpr int kTileCells = 32;

int64_t padded(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

/// One head of up to kTileCells cells: in place where they are f32, else decoded to `to`.
void rows_of(const KvRows& rows, const int32_t* cells, int n, int kv, float* to, const float** row) {
  if (rows.type == KvType::kF32) {
    for (int c = 0; c < n; ++c)
      row[c] = reinterpret_cast<const float*>(rows.values) + cells[c] * rows.width() +
               static_cast<int64_t>(kv) * rows.head_dim;
    return;
  }
  for (int c = 0; c < n; ++c) {
    row[c] = to + c * padded(rows.head_dim);
    kv_rows_detail::read_head_avx2(rows, cells[c], kv, to + c * padded(rows.head_dim));
  }
}

/// What the next tile reads is on its way while this one is computed.
void prefetch_rows(const KvRows& rows, const int32_t* cells, int64_t n, int kv) {
  const int64_t bytes = rows.head_dim * rows.element_bytes();
  for (int64_t c = 0; c < std::min<int64_t>(n, kTileCells); ++c) {
    const auto* at = reinterpret_cast<const char*>(rows.values + cells[c] * rows.value_bytes() + kv * bytes);
    for (int64_t b = 0; b < bytes; b += 64) _mm_prefetch(at + b, _MM_HINT_T0);
  }
}

/// Lane i: the sum over acc[i].
FOREBAY_INLINE __m256 sums_of(const __m256* acc) {
  const auto fold = [&](int i) {
    return _mm256_add_ps(_mm256_permute2f128_ps(acc[i], acc[i + 4], 0x20),
                         _mm256_permute2f128_ps(acc[i], acc[i + 4], 0x31));
  };
  return _mm256_hadd_ps(_mm256_hadd_ps(fold(0), fold(1)), _mm256_hadd_ps(fold(2), fold(3)));
}

/// scores[0..3]: four queries with row a; scores[4..7]: with row b.
void score_pair(const float* const* q, const float* a, const float* b, int dim, __m256 scale, float* scores) {
  __m256 acc[8];
  for (__m256& x : acc) x = _mm256_setzero_ps();
  int d = 0;
  for (; d + 8 <= dim; d += 8) {
    const __m256 va = _mm256_loadu_ps(a + d), vb = _mm256_loadu_ps(b + d);
    for (int i = 0; i < 4; ++i) {
      const __m256 vq = _mm256_loadu_ps(q[i] + d);
      acc[i] = _mm256_fmadd_ps(vq, va, acc[i]);
      acc[i + 4] = _mm256_fmadd_ps(vq, vb, acc[i + 4]);
    }
  }
  if (d < dim) {
    const __m256 va = simd::load(a + d, dim - d), vb = simd::load(b + d, dim - d);
    for (int i = 0; i < 4; ++i) {
      const __m256 vq = simd::load(q[i] + d, dim - d);
      acc[i] = _mm256_fmadd_ps(vq, va, acc[i]);
      acc[i + 4] = _mm256_fmadd_ps(vq, vb, acc[i + 4]);
    }
  }
  _mm256_storeu_ps(scores, _mm256_mul_ps(sums_of(acc), scale));
}

/// out[i][d] += sum_c weights[c][i] * row[c][d] for d in [d0, d0 + 8 * kVectors), cells in order.
template <int kVectors>
void add_values(const float* weights, const float* const* row, int n, int d0, int64_t left,
                float* const* out) {
  __m256 acc[4][kVectors];
  for (int i = 0; i < 4; ++i)
    for (int v = 0; v < kVectors; ++v) acc[i][v] = simd::load(out[i] + d0 + 8 * v, left - 8 * v);
  for (int c = 0; c < n; ++c) {
    __m256 value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = simd::load(row[c] + d0 + 8 * v, left - 8 * v);
    for (int i = 0; i < 4; ++i) {
      const __m256 p = _mm256_broadcast_ss(weights + 4 * c + i);
      for (int v = 0; v < kVectors; ++v) acc[i][v] = _mm256_fmadd_ps(p, value[v], acc[i][v]);
    }
  }
  for (int i = 0; i < 4; ++i)
    for (int v = 0; v < kVectors; ++v) simd::store(out[i] + d0 + 8 * v, left - 8 * v, acc[i][v]);
}

/// The same for one query and cells [begin, end).
void add_values_of_one(const float* weights, const float* const* row, int begin, int end, int dim,
                       float* out) {
  for (int d = 0; d < dim; d += 8) {
    __m256 acc = simd::load(out + d, dim - d);
    for (int c = begin; c < end; ++c)
      acc = _mm256_fmadd_ps(_mm256_broadcast_ss(weights + 4 * c), simd::load(row[c] + d, dim - d), acc);
    simd::store(out + d, dim - d, acc);
  }
}

/// The larger, or a NaN if there is one.
__m256 larger(__m256 a, __m256 b) {
  const __m256 keep = _mm256_or_ps(_mm256_cmp_ps(b, a, _CMP_LE_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_blendv_ps(b, a, keep);
}

/// Cells [c, c + 2) that four queries see, as lanes of scores.
struct Seen {
  __m256i limit;
  __m256 at(int64_t c) const {
    const __m256i cell =
        _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(c)), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(limit, cell));
  }
};

/// scores[c][4] become weights relative to the largest of each query; cells not seen get 0.
void softmax_of_four(float* scores, int64_t n_cells, const Seen& seen, float* max, float* sum) {
  const __m256 lowest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
  __m256 top = lowest;
  for (int64_t c = 0; c < n_cells; c += 2)
    top = larger(top, _mm256_blendv_ps(lowest, _mm256_loadu_ps(scores + 4 * c), seen.at(c)));
  top = larger(top, _mm256_permute2f128_ps(top, top, 1));
  __m256 total = _mm256_setzero_ps();
  for (int64_t c = 0; c < n_cells; c += 2) {
    const __m256 p = simd::exp(_mm256_sub_ps(_mm256_loadu_ps(scores + 4 * c), top));
    const __m256 kept = _mm256_and_ps(p, seen.at(c));
    total = _mm256_add_ps(total, kept);
    _mm256_storeu_ps(scores + 4 * c, kept);
  }
  _mm_storeu_ps(max, _mm256_castps256_ps128(top));
  _mm_storeu_ps(sum, _mm_add_ps(_mm256_castps256_ps128(total), _mm256_extractf128_ps(total, 1)));
}

}  // namespace

int64_t segment_scratch(int head_dim) {
  return kMaxQueries * kSegmentCells + kTileCells * padded(head_dim) + 4 * padded(head_dim);
}

void segment_avx2(const Segment& s, const KvRows& keys, const KvRows& values, int kv, float scale,
                  float* scratch, Partial* to) {
  const int dim = keys.head_dim;
  const int n_groups = (s.n_queries + 3) / 4;
  float* scores = scratch;  // [group][cell][4]
  float* tile = scratch + kMaxQueries * kSegmentCells;
  float* unused = tile + kTileCells * padded(dim);  // outputs of the queries that fill up a group
  const auto query = [&](int i) { return std::min(i, s.n_queries - 1); };
  const float* row[kTileCells + 1];

  for (int64_t c0 = 0; c0 < s.n_cells; c0 += kTileCells) {
    const int n = static_cast<int>(std::min<int64_t>(kTileCells, s.n_cells - c0));
    if (c0 + n < s.n_cells) prefetch_rows(keys, s.cells + c0 + n, s.n_cells - c0 - n, kv);
    rows_of(keys, s.cells + c0, n, kv, tile, row);
    row[n] = row[n - 1];
    for (int g = 0; g < n_groups; ++g) {
      const float* q[4];
      for (int i = 0; i < 4; ++i) q[i] = s.q[query(4 * g + i)];
      float* group = scores + (g * kSegmentCells + c0) * 4;
      for (int c = 0; c < n; c += 2)
        score_pair(q, row[c], row[c + 1], dim, _mm256_set1_ps(scale), group + 4 * c);
    }
  }

  prefetch_rows(values, s.cells, s.n_cells, kv);
  int64_t nearest[kMaxQueries / 4], furthest[kMaxQueries / 4];  // how far the queries of a group see
  float* out[kMaxQueries];
  for (int g = 0; g < n_groups; ++g) {
    alignas(32) int32_t limit[8];
    nearest[g] = s.n_cells;
    furthest[g] = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t n_seen = s.n_seen[query(4 * g + i)];
      limit[i] = limit[i + 4] = static_cast<int32_t>(n_seen);
      nearest[g] = std::min(nearest[g], n_seen);
      furthest[g] = std::max(furthest[g], n_seen);
      out[4 * g + i] = 4 * g + i < s.n_queries ? to[4 * g + i].out : unused + i * padded(dim);
      std::fill_n(out[4 * g + i], dim, 0.0f);
    }
    float max[4], sum[4];
    softmax_of_four(scores + g * kSegmentCells * 4, furthest[g],
                    {_mm256_load_si256(reinterpret_cast<const __m256i*>(limit))}, max, sum);
    for (int i = 0; i < 4 && 4 * g + i < s.n_queries; ++i) {
      to[4 * g + i].max = max[i];
      to[4 * g + i].sum = sum[i];
    }
  }

  for (int64_t c0 = 0; c0 < s.n_cells; c0 += kTileCells) {
    const int n = static_cast<int>(std::min<int64_t>(kTileCells, s.n_cells - c0));
    if (c0 + n < s.n_cells) prefetch_rows(values, s.cells + c0 + n, s.n_cells - c0 - n, kv);
    rows_of(values, s.cells + c0, n, kv, tile, row);
    for (int g = 0; g < n_groups; ++g) {
      // Cells that not all of them see come one query at a time: a value that is not finite would reach the
      // others through a weight of 0.
      const int n_here = static_cast<int>(std::clamp<int64_t>(nearest[g] - c0, 0, n));
      const float* weights = scores + (g * kSegmentCells + c0) * 4;
      int d = 0;
      for (; d + 16 <= dim; d += 16) add_values<2>(weights, row, n_here, d, 16, out + 4 * g);
      for (; d < dim; d += 8) add_values<1>(weights, row, n_here, d, dim - d, out + 4 * g);
      for (int i = 0; i < 4 && nearest[g] < furthest[g]; ++i) {
        const int n_seen = static_cast<int>(std::clamp<int64_t>(s.n_seen[query(4 * g + i)] - c0, 0, n));
        if (4 * g + i < s.n_queries) add_values_of_one(weights + i, row, n_here, n_seen, dim, out[4 * g + i]);
      }
    }
  }
}

void join_avx2(const Partial& next, int head_dim, Partial& into) {
  const float max = next.max <= into.max || into.max != into.max ? into.max : next.max;
  const __m256 old_factor = simd::exp(_mm256_set1_ps(into.max - max));
  const __m256 new_factor = simd::exp(_mm256_set1_ps(next.max - max));
  into.max = max;
  into.sum = _mm256_cvtss_f32(_mm256_fmadd_ps(_mm256_set1_ps(next.sum), new_factor,
                                              _mm256_mul_ps(_mm256_set1_ps(into.sum), old_factor)));
  for (int d = 0; d < head_dim; d += 8) {
    const int left = head_dim - d;
    const __m256 old = _mm256_mul_ps(simd::load(into.out + d, left), old_factor);
    simd::store(into.out + d, left, _mm256_fmadd_ps(simd::load(next.out + d, left), new_factor, old));
  }
}

void finish_avx2(const Partial& all, int head_dim, float* out) {
  const __m256 inverse = _mm256_set1_ps(1.0f / all.sum);
  for (int d = 0; d < head_dim; d += 8)
    simd::store(out + d, head_dim - d, _mm256_mul_ps(simd::load(all.out + d, head_dim - d), inverse));
}

}  // namespace forebay::attention_detail
