// Attention over long contexts: segments, rows side by side or alone, threads - one set of bits, and close to
// the reference.
#include "kernels/attention.h"

#include <cmath>
#include <cstring>

#include "kv_memory.h"
#include "parity.h"

namespace forebay {
namespace {

using testing::expect_close;
using testing::kEps;
using testing::KvMemory;
using testing::Random;
using testing::uniform_bound;

using Lists = std::vector<std::vector<CellRange>>;

/// Rows at the end of n_cells cells, each one seeing one more than the row before.
Lists dense(int64_t n_cells, int64_t T) {
  Lists lists;
  for (int64_t t = 0; t < T; ++t) lists.push_back({{0, n_cells - T + 1 + t}});
  return lists;
}

/// Every other block of four, and the tail.
Lists sparse(int64_t n_cells, int64_t T) {
  Lists lists;
  for (int64_t t = 0; t < T; ++t) {
    const int64_t seen = n_cells - T + 1 + t;
    std::vector<CellRange> list;
    for (int64_t c = 4 * (t % 2); c + 4 <= seen - 4; c += 8) list.push_back({c, c + 4});
    list.push_back({seen - seen % 4 - (seen % 4 == 0), seen});
    lists.push_back(list);
  }
  return lists;
}

struct Case {
  int n_heads, n_kv_heads, head_dim;
};

class AttentionBits : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionBits, DoNotDependOnWindowOrThreads) {
  const auto [n_heads, n_kv, dim] = GetParam();
  const AttentionShape shape{n_heads, n_kv, dim, 1.0f / std::sqrt(static_cast<float>(dim))};
  const int64_t n_cells = 1300, T = 9, width = static_cast<int64_t>(n_heads) * dim;
  Random random(41);
  const std::vector<float> q = random.normal(T * width), k = random.normal(n_cells * n_kv * dim),
                           v = random.normal(n_cells * n_kv * dim);
  ThreadPool one(1), three(3);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8})
    for (const Lists& lists : {dense(n_cells, T), sparse(n_cells, T), dense(T, T), dense(513, 2)}) {
      const auto rows = static_cast<int64_t>(lists.size());
      const KvMemory keys(type, n_kv, dim, k), values(type, n_kv, dim, v);
      const std::vector<std::span<const CellRange>> ranges(lists.begin(), lists.end());
      const auto run = [&](KernelContext& ctx, int64_t window) {
        std::vector<float> out = {q.begin(), q.begin() + rows * width};
        for (int64_t t = 0; t < rows; t += window) {
          const TensorView<float> part(out.data() + t * width, std::min(window, rows - t), width);
          attend(ctx, shape, part, keys.rows, values.rows, std::span(ranges).subspan(t, part.rows), part);
        }
        return out;
      };
      KernelContext alone(one, best_isa()), together(three, best_isa()), plain(one, Isa::kReference);
      const std::vector<float> want = run(alone, rows);
      for (int64_t window : {1, 2, 4, 9}) {
        const std::vector<float> got = run(together, window);
        EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
            << name_of(type) << ", window " << window << ", " << rows << " rows";
      }
      expect_close(run(plain, rows), want, uniform_bound(want.size(), kEps * 256), "attend");
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionBits,
                         ::testing::Values(Case{6, 2, 40}, Case{3, 3, 32}, Case{40, 1, 24}, Case{4, 1, 256}),
                         [](const auto& i) {
                           return "q" + std::to_string(i.param.n_heads) + "kv" +
                                  std::to_string(i.param.n_kv_heads) + "d" + std::to_string(i.param.head_dim);
                         });

TEST(Attention, ANanInAKeyOrAValueShows) {
  const AttentionShape shape{2, 1, 16, 1.0f};
  ThreadPool pool(1);
  for (const Isa isa : {Isa::kReference, best_isa()})
    for (const bool in_key : {true, false}) {
      std::vector<float> q(32, 0.1f), k(600 * 16, 0.1f), v(600 * 16, 0.2f);
      (in_key ? k : v)[550 * 16 + 3] = NAN;
      const KvMemory keys(KvType::kF32, 1, 16, k), values(KvType::kF32, 1, 16, v);
      const std::vector<CellRange> list{{0, 600}};
      const std::vector<std::span<const CellRange>> ranges{list};
      KernelContext ctx(pool, isa);
      attend(ctx, shape, {q.data(), 1, 32}, keys.rows, values.rows, ranges, {q.data(), 1, 32});
      EXPECT_TRUE(std::isnan(q[3]) && std::isnan(q[19]));
    }
}

/// Rows computed side by side read one another's cells with a weight of 0, and 0 times infinity is no 0.
TEST(Attention, WhatIsNotFiniteReachesOnlyRowsThatSeeIt) {
  ThreadPool pool(1);
  const int64_t T = 8;
  for (const auto& [n_heads, n_kv] : {std::pair(1, 1), std::pair(2, 1), std::pair(6, 2)})
    for (const int64_t n_cells : {T, int64_t{40}, int64_t{516}})
      for (const float bad : {NAN, INFINITY, -INFINITY, 3e38f})
        for (const bool in_key : {true, false}) {
          const int dim = 20;
          const AttentionShape shape{n_heads, n_kv, dim, 0.2f};
          Random random(7);
          const std::vector<float> q = random.normal(T * n_heads * dim);
          std::vector<float> k = random.normal(n_cells * n_kv * dim), v = random.normal(n_cells * n_kv * dim);
          const Lists lists = dense(n_cells, T);
          const std::vector<std::span<const CellRange>> ranges(lists.begin(), lists.end());
          const auto run = [&](Isa isa) {
            const KvMemory keys(KvType::kF32, n_kv, dim, k), values(KvType::kF32, n_kv, dim, v);
            KernelContext ctx(pool, isa);
            std::vector<float> out = q;
            const TensorView<float> rows(out.data(), T, n_heads * dim);
            attend(ctx, shape, rows, keys.rows, values.rows, ranges, rows);
            return out;
          };
          const std::vector<float> want = run(best_isa());
          for (float& x : std::span(in_key ? k : v).subspan((n_cells - 3) * n_kv * dim)) x = bad;
          for (const Isa isa : {Isa::kReference, best_isa()}) {
            const std::vector<float> got = run(isa);
            const int64_t clean = (T - 3) * n_heads * dim;  // rows before the third last cell
            if (isa == best_isa()) {
              EXPECT_EQ(std::memcmp(got.data(), want.data(), clean * sizeof(float)), 0)
                  << n_heads << " heads, " << n_cells << " cells, " << bad;
            }
            for (int64_t i = 0; i < clean; ++i) ASSERT_TRUE(std::isfinite(got[i])) << i;
          }
        }
}

}  // namespace
}  // namespace forebay
