// Lossless means equal bits: the same row gives the same output whatever its window and however many threads.
#include <cstring>
#include <string>

#include "kernels/expert_ffn.h"
#include "kernels/gated_delta.h"
#include "kernels/matmul.h"
#include "parity.h"
#include "quant/quant.h"

namespace forebay {
namespace {

using testing::Random;

class Invariance : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() != Isa::kReference && best_isa() != GetParam()) GTEST_SKIP() << "not on this machine";
  }
};

TEST_P(Invariance, MatmulBitsDoNotDependOnWindowOrThreads) {
  Random random(21);
  const int64_t N = 53, T = 13;
  const std::pair<DType, int64_t> cases[] = {{DType::kF32, 256},  {DType::kBF16, 256}, {DType::kQ8_0, 256},
                                             {DType::kQ4_K, 256}, {DType::kF32, 77},   {DType::kF16, 77},
                                             {DType::kBF16, 77},  {DType::kBF16, 5}};
  for (const auto& [type, K] : cases) {
    const std::vector<float> w = random.normal(N * K), x = random.normal(T * K);
    std::vector<std::byte> bytes(row_bytes(type, N * K));
    ASSERT_TRUE(encode_row(type, w, bytes.data()).has_value());
    const MatrixView view{bytes.data(), type, N, K, row_bytes(type, K)};
    ThreadPool one(1), three(3);
    KernelContext single(one, GetParam()), threaded(three, GetParam());
    std::vector<float> whole(T * N), other(T * N);
    matmul(single, view, {x.data(), T, K}, {whole.data(), T, N});
    matmul(threaded, view, {x.data(), T, K}, {other.data(), T, N});
    EXPECT_EQ(std::memcmp(whole.data(), other.data(), whole.size() * 4), 0) << "threads";
    for (int64_t window = 1; window <= 8; ++window) {
      for (int64_t t = 0; t < T; t += window) {
        const int64_t n = std::min(window, T - t);
        matmul(threaded, view, {x.data() + t * K, n, K}, {other.data() + t * N, n, N});
      }
      EXPECT_EQ(std::memcmp(whole.data(), other.data(), whole.size() * 4), 0) << "window " << window;
    }
  }
}

TEST_P(Invariance, TheDeltaRuleDoesNotDependOnWindowOrThreads) {
  Random random(23);
  for (const int v_dim : {24, 40, 128}) {
    const GatedDeltaShape shape{2, 4, 32, v_dim, HeadPairing::kTiled};
    const int64_t T = 13, kw = 2 * 32, vw = 4 * v_dim;
    const std::vector<float> q = random.normal(T * kw, 0.2f), k = random.normal(T * kw, 0.2f),
                             v = random.normal(T * vw), start = random.normal(4 * 32 * v_dim);
    std::vector<float> decay(T * 4), beta(T * 4);
    for (float& d : decay) d = static_cast<float>(random.integer(500, 1000)) / 1000.0f;
    for (float& b : beta) b = static_cast<float>(random.integer(0, 1000)) / 1000.0f;
    const auto run = [&](int n_threads, int64_t window) {
      ThreadPool pool(n_threads);
      KernelContext ctx(pool, GetParam());
      std::vector<float> state = start, out(T * vw);
      for (int64_t t = 0; t < T; t += window) {
        const int64_t n = std::min(window, T - t);
        gated_delta_rule(ctx, shape, {q.data() + t * kw, n, kw}, {k.data() + t * kw, n, kw},
                         {v.data() + t * vw, n, vw}, {decay.data() + t * 4, n, 4},
                         {beta.data() + t * 4, n, 4}, state.data(), {out.data() + t * vw, n, vw});
      }
      out.insert(out.end(), state.begin(), state.end());
      return out;
    };
    const std::vector<float> want = run(1, T);
    for (const int64_t window : {1, 2, 5, 13}) {
      const std::vector<float> got = run(3, window);
      EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * 4), 0) << v_dim << ", window " << window;
    }
  }
}

TEST_P(Invariance, ExpertCallsEqualOneRowAtATime) {
  Random random(22);
  const int64_t D = 64, F = 40, T = 5, E = 3;
  const std::vector<float> gate = random.normal(E * F * D), up = random.normal(E * F * D),
                           down = random.normal(E * D * F);
  const std::vector<float> x = random.normal(T * D);
  const auto expert = [&](int64_t e) {
    const auto view = [&](const std::vector<float>& w, int64_t rows, int64_t cols) {
      return MatrixView{reinterpret_cast<const std::byte*>(w.data() + e * rows * cols), DType::kF32, rows,
                        cols, cols * 4};
    };
    return ExpertCall{view(gate, F, D), view(up, F, D), view(down, D, F), {}, {}};
  };
  // Slots 2t and 2t+1 of row t: experts t mod 3 and (t+1) mod 3.
  std::vector<std::vector<int32_t>> rows(E), slots(E);
  for (int32_t t = 0; t < T; ++t)
    for (int32_t j = 0; j < 2; ++j) {
      rows[(t + j) % E].push_back(t);
      slots[(t + j) % E].push_back(2 * t + j);
    }
  ThreadPool pool(2);
  KernelContext ctx(pool, GetParam());
  std::vector<float> hidden(2 * T * F), scratch(2 * T * F), together(2 * T * D), single(2 * T * D);
  std::vector<ExpertCall> calls;
  for (int64_t e = 0; e < E; ++e) {
    calls.push_back(expert(e));
    calls.back().rows = rows[e];
    calls.back().slots = slots[e];
  }
  expert_ffn(ctx, calls, {x.data(), T, D}, {hidden.data(), 2 * T, F}, {scratch.data(), 2 * T, F},
             {together.data(), 2 * T, D});
  for (int32_t slot = 0; slot < 2 * T; ++slot) {
    const int32_t row = slot / 2;
    ExpertCall call = expert((row + slot % 2) % E);
    call.rows = {&row, 1};
    call.slots = {&slot, 1};
    expert_ffn(ctx, {&call, 1}, {x.data(), T, D}, {hidden.data(), 2 * T, F}, {scratch.data(), 2 * T, F},
               {single.data(), 2 * T, D});
  }
  EXPECT_EQ(std::memcmp(together.data(), single.data(), together.size() * 4), 0);
}

TEST_P(Invariance, DeltaRuleInPiecesEqualsWhole) {
  Random random(23);
  const GatedDeltaShape shape{2, 4, 16, 24, HeadPairing::kTiled};
  const int64_t T = 7, kw = 32, vw = 96;
  const std::vector<float> q = random.normal(T * kw, 0.2f), k = random.normal(T * kw, 0.2f),
                           v = random.normal(T * vw);
  const std::vector<float> decay(T * 4, 0.9f), beta(T * 4, 0.5f);
  ThreadPool pool(2);
  KernelContext ctx(pool, GetParam());
  std::vector<float> state(4 * 16 * 24), pieces_state(state), whole(T * vw), pieces(T * vw);
  gated_delta_rule(ctx, shape, {q.data(), T, kw}, {k.data(), T, kw}, {v.data(), T, vw}, {decay.data(), T, 4},
                   {beta.data(), T, 4}, state.data(), {whole.data(), T, vw});
  for (int64_t t = 0; t < T; t += 3) {
    const int64_t n = std::min<int64_t>(3, T - t);
    gated_delta_rule(ctx, shape, {q.data() + t * kw, n, kw}, {k.data() + t * kw, n, kw},
                     {v.data() + t * vw, n, vw}, {decay.data() + t * 4, n, 4}, {beta.data() + t * 4, n, 4},
                     pieces_state.data(), {pieces.data() + t * vw, n, vw});
  }
  EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), whole.size() * 4), 0);
  EXPECT_EQ(std::memcmp(state.data(), pieces_state.data(), state.size() * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Isas, Invariance, ::testing::Values(Isa::kReference, Isa::kAvx2, Isa::kNeon),
                         [](const auto& i) { return std::string(name_of(i.param)); });

}  // namespace
}  // namespace forebay
