#include "reuse/staleness.h"

#include <cmath>
#include <limits>
#include <span>

namespace forebay {
namespace {

double square_of(double x) {
  return x * x;
}

double norm_of(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += square_of(v);
  return std::sqrt(sum);
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += square_of(static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

bool remembers(const HeadStaleness& head) {
  return head.sum_log_decay > kLongMemory;
}

}  // namespace

double HeadStaleness::bound() const {
  return std::exp(sum_log_decay) * difference;
}

double HeadStaleness::half_life(int64_t n_cells) const {
  if (sum_log_decay >= 0) return std::numeric_limits<double>::infinity();
  return std::log(2.0) * static_cast<double>(n_cells) / -sum_log_decay;
}

double Staleness::share_of_heads() const {
  if (heads.empty()) return 0;
  double n = 0;
  for (const HeadStaleness& head : heads) n += remembers(head);
  return n / static_cast<double>(heads.size());
}

double Staleness::share_of_energy() const {
  double kept = 0, all = 0;
  for (const HeadStaleness& head : heads) {
    all += square_of(head.norm);
    if (remembers(head)) kept += square_of(head.norm);
  }
  return all > 0 ? kept / all : 0;
}

double Staleness::relative_bound() const {
  double bound = 0, all = 0;
  for (const HeadStaleness& head : heads) {
    bound += square_of(head.bound());
    all += square_of(head.norm);
  }
  return all > 0 ? std::sqrt(bound / all) : 0;
}

Staleness measure_staleness(const ModelConfig& config, const RecurrenceLog& log, int64_t first, int64_t end,
                            const RecurrentCopy& now, const RecurrentCopy* before,
                            const RecurrentCopy& instead) {
  Staleness out;
  out.is_estimate = before == nullptr;
  out.n_cells = end - first;
  const GatedDeltaShape& shape = config.gated_delta.shape;
  const size_t size = static_cast<size_t>(shape.k_dim) * shape.v_dim;
  for (int i = 0; i < config.n_blocks; ++i) {
    if (config.mixers[i] != MixerKind::kGatedDelta) continue;
    const std::vector<double> sums = log.sum_log_decay(i, first, end);
    for (int h = 0; h < shape.n_v_heads; ++h) {
      const auto matrix = [&](const RecurrentCopy& copy) {
        return std::span(copy.matrices[i]).subspan(h * size, size);
      };
      out.heads.push_back(
          {i, h, sums[h], norm_of(matrix(now)),
           before == nullptr ? norm_of(matrix(instead)) : distance(matrix(*before), matrix(instead))});
    }
  }
  return out;
}

}  // namespace forebay
