// How fast is the delta rule, for one token and at a prompt's length, and how near to what the processor can
// multiply? One thread.
//   gated_delta_bench [--rounds 9]
// A token of a head costs 3 k v multiply-adds and k v multiplications. The form in chunks of C tokens that
// suits matrix units costs about 3 k v + C (1.5 k + v) + C^2 / 3 multiply-adds: more than the rule itself.
#include <random>
#include <string>

#include <fmt/format.h>

#include "kernels/gated_delta.h"
#include "paired.h"

namespace forebay {
namespace {

void measure(const char* name, const GatedDeltaShape& shape, int64_t T, int n_rounds) {
  ThreadPool pool(1);
  KernelContext ctx(pool, best_isa());
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  const auto made = [&](int64_t n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = normal(random);
    return x;
  };
  const int64_t kw = shape.n_k_heads * shape.k_dim, vw = shape.n_v_heads * shape.v_dim;
  const std::vector<float> q = made(T * kw), k = made(T * kw), v = made(T * vw);
  const std::vector<float> decay(static_cast<size_t>(T * shape.n_v_heads), 0.97f),
      beta(static_cast<size_t>(T * shape.n_v_heads), 0.5f);
  std::vector<float> state = made(int64_t{shape.n_v_heads} * shape.k_dim * shape.v_dim), out(T * vw);
  const int64_t repeats = std::max<int64_t>(1, 512 / T);
  const auto arm = [&] {
    for (int64_t i = 0; i < repeats; ++i)
      gated_delta_rule(ctx, shape, {q.data(), T, kw}, {k.data(), T, kw}, {v.data(), T, vw},
                       {decay.data(), T, shape.n_v_heads}, {beta.data(), T, shape.n_v_heads}, state.data(),
                       {out.data(), T, vw});
  };
  std::vector<double> seconds = paired::run({arm}, n_rounds, paired::Clock::kProcessor)[0];
  std::sort(seconds.begin(), seconds.end());
  const double per_token = 1e6 / static_cast<double>(T * repeats);
  const double macs = 3.0 * shape.n_v_heads * shape.k_dim * shape.v_dim;
  const double median = paired::median(seconds) * per_token;
  fmt::print("{:10} T={:<4} {:7.2f} us a token [{:.2f}, {:.2f}], {:5.1f} G multiply-adds/s\n", name, T,
             median, seconds[seconds.size() / 4] * per_token, seconds[seconds.size() * 3 / 4] * per_token,
             macs / median * 1e-3);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  const int n_rounds = argc == 3 && std::string(argv[1]) == "--rounds" ? std::atoi(argv[2]) : 9;
  for (const int64_t T : {1, 8, 64, 512}) {
    forebay::measure("pebble", {2, 4, 64, 64}, T, n_rounds);
    forebay::measure("flash-next", {16, 48, 128, 128}, T, n_rounds);
  }
}
