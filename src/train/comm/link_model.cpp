#include "train/comm/link_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace forebay::train {
namespace {

/// splitmix64. Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators".
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Result<void> LinkOptions::check() const {
  const auto refuse = [](const char* name, double value, const char* wanted) {
    return Error{Code::kInvalidArgument, fmt::format("link {} is {}: {}", name, value, wanted)};
  };
  const auto is_time = [](double s) { return std::isfinite(s) && s >= 0; };
  if (!is_time(bytes_per_second)) return refuse("rate", bytes_per_second, "bytes per second, 0 for no limit");
  if (!is_time(latency_s)) return refuse("latency", latency_s, "seconds");
  if (!is_time(jitter_s)) return refuse("jitter", jitter_s, "seconds");
  if (!(loss >= 0 && loss < 1)) return refuse("loss", loss, "a share of packets, below 1");
  if (!is_time(resend_s)) return refuse("resend time", resend_s, "seconds");
  if (packet_bytes < 1) return refuse("packet", static_cast<double>(packet_bytes), "bytes");
  return {};
}

LinkModel::LinkModel(const LinkOptions& options, int from, int to)
    : options_(options),
      state_(mixed(options.seed + mixed(static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)))) {}

double LinkModel::draw() {
  state_ += 0x9e3779b97f4a7c15;
  return static_cast<double>(mixed(state_) >> 11) * 0x1.0p-53;
}

double LinkModel::arrival(double now, int64_t bytes) {
  double sent_at = std::max(now, free_at_);
  double arrival = sent_at;
  ++count_.messages;
  for (int64_t rest = std::max<int64_t>(bytes, 1); rest > 0; rest -= options_.packet_bytes) {
    const int64_t packet = std::min(rest, options_.packet_bytes);
    const double takes =
        options_.bytes_per_second > 0 ? static_cast<double>(packet) / options_.bytes_per_second : 0;
    ++count_.packets;
    sent_at += takes;
    double packet_sent_at = sent_at;
    while (options_.loss > 0 && draw() < options_.loss) {
      ++count_.resent;
      packet_sent_at += options_.resend_s + takes;
      sent_at += takes;
      count_.busy_s += takes;
    }
    count_.busy_s += takes;
    const double jitter = options_.jitter_s > 0 ? options_.jitter_s * draw() : 0;
    arrival = std::max(arrival, packet_sent_at + options_.latency_s + jitter);
  }
  free_at_ = sent_at;
  last_arrival_ = std::max(last_arrival_, arrival);
  return last_arrival_;
}

}  // namespace forebay::train
