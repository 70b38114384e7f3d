#include "plan/speed.h"

#include <algorithm>

namespace forebay {

HitCurve::HitCurve(std::vector<Point> points, std::string source)
    : points_(std::move(points)), source_(std::move(source)) {
  points_.insert(points_.begin(), {0, 0});
  points_.push_back({1, 1});
}

HitCurve HitCurve::published() {
  return HitCurve({{0.24, 0.82}}, "published: 24 % of the experts in memory, 82 % hits");
}

double HitCurve::hits(double share) const {
  share = std::clamp(share, 0.0, 1.0);
  size_t right = 1;
  while (points_[right].resident < share) ++right;
  const Point& a = points_[right - 1];
  const Point& b = points_[right];
  if (b.resident == a.resident) return b.hits;
  return a.hits + (b.hits - a.hits) * (share - a.resident) / (b.resident - a.resident);
}

double MachineRates::of_weights(DType type) const {
  const auto at = kernels.find(type);
  return at == kernels.end() ? memory : std::min(memory, at->second);
}

MachineRates assumed_rates() {
  return {.disk = 2e9, .memory = 20e9, .kernels = {}, .disk_source = "assumed", .memory_source = "assumed"};
}

double Speed::seconds_per_token() const {
  return trunk_seconds + std::max(disk_seconds, expert_seconds);
}

std::string_view Speed::bound() const {
  const double work = std::max(disk_seconds, expert_seconds);
  if (trunk_seconds >= work) return "trunk";
  return disk_seconds >= expert_seconds ? "disk" : "experts";
}

Speed estimate_speed(const ModelFootprint& model, const HeldBytes& held, const MachineRates& rates,
                     const HitCurve& curve) {
  Speed s;
  const uint64_t all = model.all_slots_bytes();
  if (all > 0) s.resident_share = std::min(1.0, static_cast<double>(held.arena) / static_cast<double>(all));
  s.hit_rate = curve.hits(s.resident_share);

  s.expert_bytes = model.expert_bytes_per_token();
  s.cold_bytes = s.expert_bytes;
  s.disk_bytes = static_cast<uint64_t>((1 - s.hit_rate) * static_cast<double>(s.cold_bytes));
  // Each hash head looks up one row, and a row that is not kept costs a page.
  if (model.config.ngram.block >= 0 && held.ngram_rows < model.ngram_bytes) {
    constexpr uint64_t kPage = 4096;
    s.disk_bytes += kPage * static_cast<uint64_t>(model.config.ngram.n_heads());
  }
  s.trunk_bytes = model.trunk_read_bytes + 2 * held.state_fixed + held.state_rows;

  const auto seconds = [](uint64_t bytes, double rate) {
    return bytes == 0 ? 0.0 : static_cast<double>(bytes) / rate;
  };
  s.disk_seconds = seconds(s.disk_bytes, rates.disk);
  s.trunk_seconds = seconds(model.trunk_read_bytes, rates.of_weights(model.trunk_type)) +
                    seconds(s.trunk_bytes - model.trunk_read_bytes, rates.memory);
  s.expert_seconds = seconds(s.expert_bytes, rates.of_weights(model.expert_type));
  return s;
}

}  // namespace forebay
