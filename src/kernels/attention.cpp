// Rows that see cells from the same one on (dense attention) are computed together, so that a K/V row is read
// and decoded once for all their heads. Where rows are few, their segments go to different threads.
#include "kernels/attention.h"

#include <algorithm>

#include "core/ensure.h"

namespace forebay {
namespace {

using attention_detail::kMaxQueries;
using attention_detail::kSegmentCells;
using attention_detail::Partial;
using attention_detail::Segment;

int64_t cells_in(std::span<const CellRange> ranges) {
  int64_t n = 0;
  for (const CellRange& range : ranges) n += range.end - range.begin;
  return n;
}

/// Visited cells [first, first + n) of a row's ranges.
void list_cells(std::span<const CellRange> ranges, int64_t first, int64_t n, int32_t* cells) {
  for (const CellRange& range : ranges) {
    const int64_t skip = std::min(first, range.end - range.begin);
    first -= skip;
    for (int64_t c = range.begin + skip; c < range.end && n > 0; ++c, --n) *cells++ = static_cast<int32_t>(c);
    if (n == 0) return;
  }
}

/// Of a task over some of a row's cells at once.
int64_t task_scratch(int head_dim) {
  return attention_detail::segment_scratch(head_dim) + int64_t{2} * kMaxQueries * head_dim + kSegmentCells;
}

/// Partials of this many (row, segment) pairs are kept at most: some MiB.
constexpr int64_t kMostApart = 1024;

int64_t segments_of(int64_t n_cells) {
  return (n_cells + kSegmentCells - 1) / kSegmentCells;
}

/// A partial: out, max, sum.
int64_t partial_floats(int head_dim) {
  return head_dim + 2;
}

class Attend {
 public:
  Attend(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q, const KvRows& keys,
         const KvRows& values, std::span<const std::span<const CellRange>> ranges, TensorView<float> out)
      : ctx_(ctx),
        shape_(shape),
        group_(shape.n_heads / shape.n_kv_heads),
        q_(q),
        keys_(keys),
        values_(values),
        ranges_(ranges),
        out_(out) {}

  void run() {
    ctx_.reserve_scratch(task_scratch(shape_.head_dim));
    // Rows [t, t + rows_at_once_) side by side, wherever they can be.
    rows_at_once_ = std::max(1, kMaxQueries / std::min(group_, kMaxQueries));
    const int64_t n_blocks = (q_.rows + rows_at_once_ - 1) / rows_at_once_;
    int64_t most_cells = 0;
    for (const auto& ranges : ranges_) most_cells = std::max(most_cells, cells_in(ranges));
    const int64_t n_segments = segments_of(most_cells);
    const int n_threads = ctx_.pool().n_threads();
    const int64_t n_tasks = n_blocks * shape_.n_kv_heads;
    if (n_segments > 1 && n_threads > 1 && n_tasks < 4 * n_threads && q_.rows * n_segments <= kMostApart) {
      run_apart(n_segments);
      return;
    }
    ctx_.pool().parallel_for(n_tasks, 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t t0 = task / shape_.n_kv_heads * rows_at_once_;
        const int64_t t1 = std::min<int64_t>(t0 + rows_at_once_, q_.rows);
        const int kv = static_cast<int>(task % shape_.n_kv_heads);
        for (int64_t t = t0; t < t1;) {
          const int64_t n = rows_alike(t, t1);
          for (int h = 0; h < group_; h += kMaxQueries) whole(t, n, kv, h, thread);
          t += n;
        }
      }
    });
  }

 private:
  /// How many rows from t on can share cells: each has one range, from the same cell on.
  int64_t rows_alike(int64_t t, int64_t end) const {
    int64_t n = 1;
    if (ranges_[t].size() == 1)
      while (t + n < end && ranges_[t + n].size() == 1 && ranges_[t + n][0].begin == ranges_[t][0].begin) ++n;
    return n;
  }

  int heads_from(int h) const { return std::min(kMaxQueries, group_ - h); }

  /// Segment s of rows [t, t + n), heads [h, ...) of the group of kv. False: no row sees that far.
  bool fill(Segment& segment, int64_t s, int64_t t, int64_t n, int kv, int h, int32_t* cells) const {
    segment.n_queries = 0;
    segment.n_cells = 0;
    int64_t longest = t;
    for (int64_t r = t; r < t + n; ++r) {
      const int64_t seen = std::clamp<int64_t>(cells_in(ranges_[r]) - s * kSegmentCells, 0, kSegmentCells);
      if (seen > segment.n_cells) {
        segment.n_cells = seen;
        longest = r;
      }
      for (int i = h; i < h + heads_from(h); ++i) {
        segment.q[segment.n_queries] = q_.row(r) + static_cast<int64_t>(kv * group_ + i) * shape_.head_dim;
        segment.n_seen[segment.n_queries++] = seen;
      }
    }
    list_cells(ranges_[longest], s * kSegmentCells, segment.n_cells, cells);
    segment.cells = cells;
    return segment.n_cells > 0;
  }

  float* out_of(int64_t t, int kv, int head) const {
    return out_.row(t) + static_cast<int64_t>(kv * group_ + head) * shape_.head_dim;
  }

  /// Rows [t, t + n), heads [h, ...) of the group of kv, one segment after the other. `out` may be the
  /// queries themselves: they are read to the end before it is written.
  void whole(int64_t t, int64_t n, int kv, int h, int thread) const {
    const int64_t dim = shape_.head_dim;
    const int n_queries = static_cast<int>(n) * heads_from(h);
    const int64_t own = attention_detail::segment_scratch(shape_.head_dim);
    float* scratch = ctx_.scratch(thread, task_scratch(shape_.head_dim));
    float* partials = scratch + own;
    auto* cells = reinterpret_cast<int32_t*>(partials + 2 * n_queries * dim);
    Partial all[kMaxQueries], next[kMaxQueries];
    for (int i = 0; i < n_queries; ++i) {
      all[i].out = partials + i * dim;
      next[i].out = partials + (n_queries + i) * dim;
    }
    Segment segment;
    for (int64_t s = 0; fill(segment, s, t, n, kv, h, cells); ++s) {
      attention_detail::segment_avx2(segment, keys_, values_, kv, shape_.scale, scratch, s == 0 ? all : next);
      for (int i = 0; s > 0 && i < n_queries; ++i)
        if (segment.n_seen[i] > 0) attention_detail::join_avx2(next[i], shape_.head_dim, all[i]);
    }
    for (int i = 0; i < n_queries; ++i)
      attention_detail::finish_avx2(all[i], shape_.head_dim,
                                    out_of(t + i / heads_from(h), kv, h + i % heads_from(h)));
  }

  /// Every (row, K/V head, segment) by itself, then joined in order: the same bits.
  void run_apart(int64_t n_segments) const {
    const int64_t dim = shape_.head_dim;
    const int64_t per_partial = partial_floats(shape_.head_dim);
    const int64_t n_heads = shape_.n_heads;
    float* shared = ctx_.shared_scratch(q_.rows * n_segments * n_heads * per_partial);
    const auto partial_of = [&](int64_t t, int64_t s, int64_t head) {
      return shared + ((t * n_segments + s) * n_heads + head) * per_partial;
    };
    ctx_.pool().parallel_for(
        q_.rows * n_segments * shape_.n_kv_heads, 1, [&](int64_t begin, int64_t end, int thread) {
          const int64_t own = attention_detail::segment_scratch(shape_.head_dim);
          float* scratch = ctx_.scratch(thread, task_scratch(shape_.head_dim));
          for (int64_t task = begin; task < end; ++task) {
            const int kv = static_cast<int>(task % shape_.n_kv_heads);
            const int64_t s = task / shape_.n_kv_heads % n_segments;
            const int64_t t = task / shape_.n_kv_heads / n_segments;
            Segment segment;
            for (int h = 0; h < group_; h += kMaxQueries) {
              if (!fill(segment, s, t, 1, kv, h, reinterpret_cast<int32_t*>(scratch + own))) continue;
              Partial to[kMaxQueries];
              for (int i = 0; i < segment.n_queries; ++i) to[i].out = partial_of(t, s, kv * group_ + h + i);
              attention_detail::segment_avx2(segment, keys_, values_, kv, shape_.scale, scratch, to);
              for (int i = 0; i < segment.n_queries; ++i) {
                to[i].out[dim] = to[i].max;
                to[i].out[dim + 1] = to[i].sum;
              }
            }
          }
        });
    ctx_.pool().parallel_for(q_.rows * n_heads, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t t = task / n_heads;
        const int64_t head = task % n_heads;
        const int64_t n_own = segments_of(cells_in(ranges_[t]));
        const auto read = [&](int64_t s) {
          float* p = partial_of(t, s, head);
          return Partial{p[dim], p[dim + 1], p};
        };
        Partial all = read(0);
        for (int64_t s = 1; s < n_own; ++s) attention_detail::join_avx2(read(s), shape_.head_dim, all);
        attention_detail::finish_avx2(all, shape_.head_dim, out_.row(t) + head * dim);
      }
    });
  }

  KernelContext& ctx_;
  const AttentionShape& shape_;
  const int group_;  // query heads of a K/V head
  TensorView<const float> q_;
  const KvRows& keys_;
  const KvRows& values_;
  std::span<const std::span<const CellRange>> ranges_;
  TensorView<float> out_;
  int rows_at_once_ = 1;
};

void attend_ref(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q,
                const KvRows& keys, const KvRows& values, std::span<const std::span<const CellRange>> ranges,
                TensorView<float> out) {
  const int group = shape.n_heads / shape.n_kv_heads;
  ctx.pool().parallel_for(q.rows * shape.n_heads, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t t = task / shape.n_heads;
      const int64_t h = task % shape.n_heads;
      // `out` may be the query itself.
      const int64_t n_cells = cells_in(ranges[t]);
      float* scratch = ctx.scratch(thread, n_cells + shape.head_dim);
      attention_detail::head_ref(q.row(t) + h * shape.head_dim, keys, values, static_cast<int>(h / group),
                                 shape.scale, ranges[t], scratch, scratch + n_cells);
      std::copy_n(scratch + n_cells, shape.head_dim, out.row(t) + h * shape.head_dim);
    }
  });
}

}  // namespace

void reserve_attention(KernelContext& ctx, const AttentionShape& shape, int64_t n_cells) {
  ctx.shared_scratch(std::min(segments_of(n_cells), kMostApart) * shape.n_heads *
                     partial_floats(shape.head_dim));
}

void attend(KernelContext& ctx, const AttentionShape& shape, TensorView<const float> q, const KvRows& keys,
            const KvRows& values, std::span<const std::span<const CellRange>> ranges, TensorView<float> out) {
  ENSURE(q.cols == static_cast<int64_t>(shape.n_heads) * shape.head_dim && out.cols == q.cols,
         "attend widths");
  ENSURE(static_cast<int64_t>(ranges.size()) == q.rows && out.rows == q.rows, "attend rows");
  ENSURE(keys.n_heads == shape.n_kv_heads && keys.head_dim == shape.head_dim, "attend keys");
  for (const auto& list : ranges) ENSURE(cells_in(list) > 0, "a row that sees no cell");
  if (ctx.isa() == Isa::kReference)
    attend_ref(ctx, shape, q, keys, values, ranges, out);
  else
    Attend(ctx, shape, q, keys, values, ranges, out).run();
}

}  // namespace forebay
