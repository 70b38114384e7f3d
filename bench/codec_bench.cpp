// What does a codec cost, and what does it lose? Rows per second through view and gradient_view, and the
// error energy of Gaussian rows, for each codec at a few widths.
//
//   codec_bench speed [cpu|cuda] [rows] [threads]    rows per second, both legs and with bytes in between
//   codec_bench energy                               the first table of docs/codecs.md
//   codec_bench spectrum                             what a basis captures, and what that is worth
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "train/wire/basis.h"
#include "train/wire/make_codec.h"
#include "train/wire/self_test.h"

namespace forebay::train {
namespace {

struct Arm {
  std::string label;
  CodecOptions options;
};

std::vector<Arm> arms() {
  return {{"dense", {.name = "dense"}},
          {"prf", {.name = "prf"}},
          {"prf, a mask per token", {.name = "prf", .scope = MaskScope::kToken}},
          {"sr b=1", {.name = "sr", .bits = 1}},
          {"sr b=2", {.name = "sr", .bits = 2}},
          {"sr b=3", {.name = "sr", .bits = 3}},
          {"sr b=4", {.name = "sr", .bits = 4}},
          {"sr b=8", {.name = "sr", .bits = 8}},
          {"rn b=1", {.name = "rn", .bits = 1}},
          {"rn b=2", {.name = "rn", .bits = 2}},
          {"rn b=3", {.name = "rn", .bits = 3}},
          {"rn b=4", {.name = "rn", .bits = 4}},
          {"rn b=8", {.name = "rn", .bits = 8}},
          {"prf-sr b=2", {.name = "prf-sr", .bits = 2}},
          {"powersgd", {.name = "powersgd"}},
          {"frlr", {.name = "frlr"}},
          {"frlr-unbiased", {.name = "frlr-unbiased"}}};
}

std::unique_ptr<Codec> must_make(const CodecOptions& options, int64_t width) {
  Result<std::unique_ptr<Codec>> made = make_codec(options, width);
  if (made) return std::move(*made);
  std::fprintf(stderr, "%s\n", made.error().message.c_str());
  std::exit(1);
}

void finish(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

/// Seconds of one call, the best of a few after one that is thrown away.
double seconds_of(torch::Device device, const std::function<void(int)>& work) {
  double best = 1e30;
  for (int round = -1; round < 5; ++round) {
    finish(device);
    const auto start = std::chrono::steady_clock::now();
    work(round);
    finish(device);
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (round >= 0) best = std::min(best, s);
  }
  return best;
}

/// Every call has a step of its own: masks are made anew, as in a run.
void speed(torch::Device device, int64_t n_rows) {
  std::printf(
      "| codec | W | view, rows/s | gradient, rows/s | encode + decode, rows/s | plain copy, rows/s |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const int64_t width : {256, 384, 1024, 1536}) {
    const torch::Tensor x = torch::randn({n_rows, width}, device);
    const double copied = seconds_of(device, [&](int) { x.clone(); });
    for (const Arm& arm : arms()) {
      if (arm.label.starts_with("rn b=") && arm.options.bits != 4) continue;
      const std::unique_ptr<Codec> codec = must_make(arm.options, width);
      codec->receive_on(device);
      torch::Tensor saved;
      const double viewed = seconds_of(device, [&](int step) { codec->view(x, {.step = 2 + step}, &saved); });
      const double back =
          seconds_of(device, [&](int step) { codec->gradient_view(x, {.step = 2 + step}, saved); });
      const double sent = seconds_of(device, [&](int step) {
        const WireKey key{.step = 2 + step};
        codec->decode(codec->encode(x, key, &saved), n_rows, width, key, &saved).value();
      });
      const double n = static_cast<double>(n_rows);
      std::printf("| %s | %lld | %.3g | %.3g | %.3g | %.3g |\n", arm.label.c_str(),
                  static_cast<long long>(width), n / viewed, n / back, n / sent, n / copied);
      std::fflush(stdout);
    }
  }
}

void energy() {
  constexpr int64_t kWidth = 1536;
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({256, kWidth});
  std::printf(
      "| codec | bits forward | bits backward | declared | error energy | bias energy of 200 draws |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Arm& arm : arms()) {
    const std::unique_ptr<Codec> codec = must_make(arm.options, kWidth);
    double sum = 0;
    constexpr int kSteps = 20;
    for (int step = 0; step < kSteps; ++step)
      sum += (codec->view(x, {.seed = 9, .step = step}, nullptr) - x).square().sum().item<double>();
    const BiasMeasure bias = measure_bias(*codec, kWidth, 200);
    std::printf("| %s | %.1f | %.1f | %s | %.3g | %.2g (noise explains %.2g) |\n", codec->name().c_str(),
                codec->forward_bits(kWidth), codec->backward_bits(kWidth),
                codec->bias() == Bias::kUnbiased ? "unbiased" : "biased",
                sum / kSteps / x.square().sum().item<double>(), bias.bias_energy, bias.bias_limit);
  }
}

/// After 20 refreshes on rows with energies i^-alpha.
void spectrum() {
  constexpr int64_t kWidth = 1536;
  std::printf(
      "| alpha | captured | powersgd r=48 | frlr | frlr-unbiased | prf |\n|---|---|---|---|---|---|\n");
  for (const double alpha : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    torch::manual_seed(1);
    const torch::Tensor scale = torch::arange(1, kWidth + 1, torch::kFloat).pow(-alpha / 2);
    const torch::Tensor x = torch::randn({1024, kWidth}) * scale;
    std::printf("| %.1f", alpha);
    for (const char* name : {"powersgd", "frlr", "frlr-unbiased", "prf"}) {
      const std::unique_ptr<Codec> codec =
          must_make({.name = name, .rank = std::string(name) == "prf" ? 0 : 48}, kWidth);
      for (int fire = 0; fire < 20 && codec->basis() != nullptr; ++fire) {
        codec->basis()->harvest(x, {.step = fire});
        if (const Result<void> updated = codec->basis()->update(0); !updated) std::abort();
        codec->basis()->activate();
      }
      if (std::string(name) == "powersgd")
        std::printf(" | %.3f", captured_energy(x, codec->basis()->active(0, torch::kCPU)));
      double sum = 0;
      constexpr int kSteps = 50;
      for (int step = 0; step < kSteps; ++step)
        sum += (codec->view(x, {.seed = 9, .step = step}, nullptr) - x).square().sum().item<double>();
      std::printf(" | %.3g", sum / kSteps / x.square().sum().item<double>());
      std::fflush(stdout);
    }
    std::printf(" |\n");
  }
}

}  // namespace
}  // namespace forebay::train

int main(int argc, char** argv) {
  const std::string question = argc > 1 ? argv[1] : "";
  const torch::NoGradGuard no_grad;
  if (question == "energy") {
    forebay::train::energy();
    return 0;
  }
  if (question == "spectrum") {
    forebay::train::spectrum();
    return 0;
  }
  if (question != "speed") {
    std::fprintf(stderr, "usage: codec_bench speed [cpu|cuda] [rows] [threads] | energy | spectrum\n");
    return 2;
  }
  const std::string device = argc > 2 ? argv[2] : torch::cuda::is_available() ? "cuda" : "cpu";
  if (argc > 4) torch::set_num_threads(std::atoi(argv[4]));
  forebay::train::speed(torch::Device(device), argc > 3 ? std::atoll(argv[3]) : 4096);
  return 0;
}
