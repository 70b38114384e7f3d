#include "quant/scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quant/block.h"

namespace forebay {
namespace {

constexpr size_t kMaxRun = 32;

void affine_codes(std::span<const float> x, float inverse, float minimum, int max_code, uint8_t* codes) {
  for (size_t i = 0; i < x.size(); ++i)
    codes[i] = static_cast<uint8_t>(round_even(inverse * (x[i] - minimum), 0, max_code));
}

float affine_error(std::span<const float> x, std::span<const float> importance, AffineFit fit,
                   const uint8_t* codes, bool absolute) {
  float sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float error = fit.scale * static_cast<float>(codes[i]) + fit.minimum - x[i];
    sum += importance[i] * (absolute ? std::fabs(error) : error * error);
  }
  return sum;
}

/// Sums over a run with importance x^2: best scale for given codes is xq / qq, and it removes
/// xq^2 / qq from the squared error.
struct Projection {
  float xq = 0;
  float qq = 0;

  void add(float x, float q) {
    const float importance = x * x;
    xq += importance * x * q;
    qq += importance * q * q;
  }
  float scale() const { return qq > 0 ? xq / qq : 0; }
  bool beats(float score) const { return qq > 0 && xq * xq > score * qq; }
};

int symmetric_code(float scaled, int half_range) {
  return round_even(scaled, -half_range, half_range - 1);
}

Projection project_symmetric(std::span<const float> x, float inverse, int half_range) {
  Projection sums;
  for (float value : x) sums.add(value, static_cast<float>(symmetric_code(inverse * value, half_range)));
  return sums;
}

Projection project_table(std::span<const float> x, float inverse, const int8_t* values) {
  Projection sums;
  for (float value : x)
    sums.add(value, static_cast<float>(values[nearest_in_table(values, inverse * value)]));
  return sums;
}

}  // namespace

AffineFit fit_affine(std::span<const float> x, std::span<const float> importance, const AffineSearch& search,
                     uint8_t* codes) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float maximum = *high;
  AffineFit best{0, std::min(0.0f, *low)};
  if (maximum == best.minimum) {
    std::fill_n(codes, x.size(), uint8_t{0});
    return best;
  }
  float sum_w = 0, sum_x = 0;  // w: importance, q: code
  for (size_t i = 0; i < x.size(); ++i) {
    sum_w += importance[i];
    sum_x += importance[i] * x[i];
  }

  const auto max_code = static_cast<float>(search.max_code);
  const float inverse = max_code / (maximum - best.minimum);
  affine_codes(x, inverse, best.minimum, search.max_code, codes);
  best.scale = 1 / inverse;
  float best_error = affine_error(x, importance, best, codes, search.absolute_error);

  std::array<uint8_t, kMaxRun> trial_codes;
  for (int step = 0; step < search.n_trials; ++step) {
    // A kept trial moves the minimum from which the next ones start; the maximum stays.
    const float aim = search.first_step + 0.1f * static_cast<float>(step) + max_code;
    affine_codes(x, aim / (maximum - best.minimum), best.minimum, search.max_code, trial_codes.data());
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto q = static_cast<float>(trial_codes[i]);
      sum_q += importance[i] * q;
      sum_qq += importance[i] * q * q;
      sum_xq += importance[i] * q * x[i];
    }
    const float determinant = sum_w * sum_qq - sum_q * sum_q;
    if (!(determinant > 0)) continue;
    AffineFit trial{(sum_w * sum_xq - sum_x * sum_q) / determinant,
                    (sum_qq * sum_x - sum_q * sum_xq) / determinant};
    if (trial.minimum > 0) trial = {sum_xq / sum_qq, 0};
    const float error = affine_error(x, importance, trial, trial_codes.data(), search.absolute_error);
    if (error < best_error) {
      std::copy_n(trial_codes.data(), x.size(), codes);
      best_error = error;
      best = trial;
    }
  }
  return best;
}

float fit_symmetric_scan(std::span<const float> x, int half_range, int8_t* codes) {
  const float largest = signed_max(x);
  if (std::fabs(largest) < kNegligible) {
    std::fill_n(codes, x.size(), static_cast<int8_t>(-half_range));
    return 0;
  }
  const auto range = static_cast<float>(half_range);
  float inverse = -range / largest;
  const Projection first = project_symmetric(x, inverse, half_range);
  float scale = first.scale(), score = scale * first.xq;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const float trial_inverse = -(range + 0.1f * static_cast<float>(step)) / largest;
    const Projection trial = project_symmetric(x, trial_inverse, half_range);
    if (!trial.beats(score)) continue;
    inverse = trial_inverse;
    scale = trial.scale();
    score = scale * trial.xq;
  }
  for (size_t i = 0; i < x.size(); ++i)
    codes[i] = static_cast<int8_t>(symmetric_code(inverse * x[i], half_range));
  return scale;
}

float fit_symmetric_descent(std::span<const float> x, int half_range, int8_t* codes) {
  constexpr int kMaxSweeps = 5;
  const float largest = signed_max(x);
  if (std::fabs(largest) < kNegligible) {
    std::fill_n(codes, x.size(), static_cast<int8_t>(-half_range));
    return 0;
  }
  const float inverse = static_cast<float>(-half_range) / largest;
  Projection sums;
  for (size_t i = 0; i < x.size(); ++i) {
    codes[i] = static_cast<int8_t>(symmetric_code(inverse * x[i], half_range));
    sums.add(x[i], codes[i]);
  }
  for (int sweep = 0, n_changed = 1; sweep < kMaxSweeps && n_changed > 0; ++sweep) {
    n_changed = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      // The sums without weight i tell the scale the others want, and that scale the code weight i wants.
      const float importance = x[i] * x[i];
      const auto old_code = static_cast<float>(codes[i]);
      Projection others = sums;
      others.xq -= importance * x[i] * old_code;
      others.qq -= importance * old_code * old_code;
      if (!(others.xq > 0)) continue;
      const int code = symmetric_code(x[i] * others.qq / others.xq, half_range);
      if (code == codes[i]) continue;
      others.add(x[i], static_cast<float>(code));
      if (others.qq > 0 && others.xq * others.xq * sums.qq > sums.xq * sums.xq * others.qq) {
        codes[i] = static_cast<int8_t>(code);
        sums = others;
        ++n_changed;
      }
    }
  }
  return sums.scale();
}

int nearest_in_table(const int8_t* values, float x) {
  const int8_t* upper = std::lower_bound(values, values + 16, x);
  if (upper == values) return 0;
  if (upper == values + 16) return 15;
  const int code = static_cast<int>(upper - values);
  return x - upper[-1] < upper[0] - x ? code - 1 : code;
}

float fit_table_scan(std::span<const float> x, const int8_t* values) {
  constexpr int kSteps = 7;  // to either side
  const float largest = signed_max(x);
  if (std::fabs(largest) < kNegligible) return 0;
  const auto end = static_cast<float>(values[0]);
  const Projection first = project_table(x, 1 / (-largest / end), values);
  float scale = first.scale(), score = scale * first.xq;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const Projection trial = project_table(x, (static_cast<float>(step) + end) / largest, values);
    if (!trial.beats(score)) continue;
    scale = trial.scale();
    score = scale * trial.xq;
  }
  return scale;
}

}  // namespace forebay
