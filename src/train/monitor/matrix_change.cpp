#include "train/monitor/matrix_change.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "train/anchor/safe_mask.h"

namespace forebay::train {
namespace {

torch::Tensor singular_values(const torch::Tensor& m_RC) {
  return torch::linalg_svdvals(m_RC);
}

/// true where the stored bits differ: -0 and 0 do, two NaNs of the same payload do not.
torch::Tensor bits_differ(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.element_size() == 8) return a.ne(b);
  const auto as_integers = [](const torch::Tensor& t) {
    const torch::Tensor flat = t.contiguous();
    const auto type = flat.element_size() == 4 ? torch::kInt32 : torch::kInt16;
    return torch::from_blob(flat.data_ptr(), flat.sizes(), torch::dtype(type)).clone();
  };
  return as_integers(a).ne(as_integers(b));
}

double share(const torch::Tensor& mask) {
  return mask.numel() == 0
             ? 0
             : static_cast<double>(mask.sum().item<int64_t>()) / static_cast<double>(mask.numel());
}

void compare_spectra(const torch::Tensor& base, const torch::Tensor& now, MatrixChange& out) {
  const auto [u0, s0, v0] = torch::linalg_svd(base, /*full_matrices=*/false);
  const auto [u1, s1, v1] = torch::linalg_svd(now, /*full_matrices=*/false);
  const double norm = s0.norm().item<double>();
  out.spectral_shift = (s1 - s0).norm().item<double>() / norm;
  out.angle_left = largest_angle(u0.narrow(1, 0, out.rank), u1.narrow(1, 0, out.rank));
  out.angle_right = largest_angle(v0.narrow(0, 0, out.rank).t(), v1.narrow(0, 0, out.rank).t());
}

void measure_update(const torch::Tensor& update, MatrixChange& out) {
  const torch::Tensor s = singular_values(update);
  const torch::Tensor p = s / s.sum();
  out.effective_rank = std::exp(-(torch::xlogy(p, p)).sum().item<double>());
  const torch::Tensor energy = (s * s).cumsum(0) / (s * s).sum();
  out.rank_99 = static_cast<double>(energy.lt(0.99).sum().item<int64_t>() + 1);
}

}  // namespace

double largest_angle(const torch::Tensor& a_Nk, const torch::Tensor& b_Nk) {
  const torch::Tensor inner = torch::matmul(a_Nk.t(), b_Nk);
  const double smallest_cosine = singular_values(inner).min().item<double>();
  const double largest_sine = singular_values(b_Nk - torch::matmul(a_Nk, inner)).max().item<double>();
  return std::atan2(largest_sine, smallest_cosine);
}

MatrixChange compare(const torch::Tensor& base_RC, const torch::Tensor& now_RC,
                     const MonitorOptions& options) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor base = base_RC.detach().cpu().contiguous(), now = now_RC.detach().cpu().contiguous();
  MatrixChange out;
  out.rows = base.size(0);
  out.columns = base.size(1);
  const int64_t smaller = std::min(out.rows, out.columns);
  out.rank = std::clamp<int64_t>(options.rank > 0 ? options.rank : (smaller + 9) / 10, 1,
                                 std::max<int64_t>(1, smaller));
  out.identical =
      base.nbytes() == now.nbytes() && std::memcmp(base.data_ptr(), now.data_ptr(), base.nbytes()) == 0;
  if (out.identical) {
    out.spectral_shift = out.angle_left = out.angle_right = 0;
    out.principal_overlap = out.effective_rank = out.rank_99 = 0;
    return out;
  }
  const torch::Tensor changed = bits_differ(base.to(torch::kBFloat16), now.to(torch::kBFloat16));
  out.changed = share(bits_differ(base, now));
  out.changed_bf16 = share(changed);
  const torch::Tensor wide = base.to(torch::kFloat64), wide_now = now.to(torch::kFloat64);
  const torch::Tensor update = wide_now - wide;
  out.update_norm = update.norm().item<double>() / wide.norm().item<double>();
  // An SVD of what is not finite does not return.
  if (base.numel() > options.most_elements || !torch::isfinite(update).all().item<bool>()) return out;
  compare_spectra(wide, wide_now, out);
  measure_update(update, out);
  const torch::Tensor principal =
      principal_mask(base, {.rank = options.principal_rank, .alpha = options.principal_alpha});
  const double hit = share(principal.logical_and(changed)), by_chance = share(principal) * out.changed_bf16;
  out.principal_overlap = by_chance == 0 ? std::numeric_limits<double>::quiet_NaN() : hit / by_chance;
  return out;
}

}  // namespace forebay::train
