#include "train/anchor/sign_anchor.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "train/anchor/bits.h"

namespace forebay::train {

Result<SignAnchor> SignAnchor::make(std::vector<torch::Tensor> parameters, std::vector<torch::Tensor> masks,
                                    const AnchorOptions& options) {
  if (!(options.mu >= 0 && options.mu < 1))
    return Error{Code::kInvalidArgument,
                 fmt::format("anchor: mu is {}, wanted from 0 to below 1", options.mu)};
  if (options.every < 1)
    return Error{Code::kInvalidArgument,
                 fmt::format("anchor: every is {}, wanted at least 1", options.every)};
  if (!(options.step >= 0) || !std::isfinite(options.step))
    return Error{Code::kInvalidArgument, fmt::format("anchor: step is {}, wanted at least 0", options.step)};
  if (!masks.empty() && masks.size() != parameters.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("anchor: {} masks for {} parameters", masks.size(), parameters.size())};
  masks.resize(parameters.size());
  SignAnchor anchor;
  anchor.options_ = options;
  for (size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor& mask = masks[i];
    if (parameters[i].scalar_type() != torch::kFloat32)
      return Error{Code::kInvalidArgument, fmt::format("anchor: parameter {} is not f32", i)};
    if (mask.defined() && (mask.scalar_type() != torch::kBool || mask.sizes() != parameters[i].sizes()))
      return Error{Code::kInvalidArgument,
                   fmt::format("anchor: mask {} is not bool of its parameter's shape", i)};
    if (mask.defined()) mask = mask.to(parameters[i].device());
    anchor.average_.push_back(torch::zeros_like(parameters[i].detach()));
    anchor.n_signs_ += mask.defined() ? mask.sum().item<int64_t>() : parameters[i].numel();
  }
  anchor.parameters_ = std::move(parameters);
  anchor.masks_ = std::move(masks);
  return anchor;
}

Result<void> SignAnchor::tick(std::span<const torch::Tensor> gradients) {
  const torch::NoGradGuard no_grad;
  if (gradients.size() != parameters_.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("anchor: {} gradients for {} parameters", gradients.size(), parameters_.size())};
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].sizes() != parameters_[i].sizes())
      return Error{Code::kInvalidArgument, fmt::format("anchor: gradient {} has another shape", i)};
    if (!torch::isfinite(gradients[i]).all().item<bool>())
      return Error{Code::kInvalidArgument, fmt::format("anchor: gradient {} is not finite", i)};
  }
  for (size_t i = 0; i < gradients.size(); ++i)
    average_[i].mul_(options_.mu).add_(gradients[i].to(torch::kFloat32), 1 - options_.mu);
  tick();
  return {};
}

void SignAnchor::tick() {
  ++counts_.ticks;
  fired_ = false;
}

std::vector<uint8_t> SignAnchor::signs() const {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> plus;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor sign = average_[i].ge(0);
    plus.push_back(masks_[i].defined() ? sign.masked_select(masks_[i]) : sign.reshape({-1}));
  }
  return plus.empty() ? std::vector<uint8_t>() : pack_bits(torch::cat(plus));
}

Result<void> SignAnchor::fire(std::span<const uint8_t> payload) {
  const torch::NoGradGuard no_grad;
  const auto refuse = [this](std::string message) {
    ++counts_.refused_writes;
    return Error{Code::kInvalidArgument, std::move(message)};
  };
  if (!due()) return refuse(fmt::format("anchor: no fire is due at tick {}", counts_.ticks));
  if (static_cast<int64_t>(payload.size()) != payload_bytes())
    return refuse(fmt::format("anchor: {} bytes of signs, wanted {}", payload.size(), payload_bytes()));
  if (n_signs_ % 8 != 0 && payload.back() >> (n_signs_ % 8) != 0)
    return refuse("anchor: bits behind the last sign are not 0");

  const torch::Tensor all = unpack_bits(payload, n_signs_);
  int64_t at = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor theta = parameters_[i].detach();
    const torch::Tensor& mask = masks_[i];
    const int64_t n = mask.defined() ? mask.sum().item<int64_t>() : theta.numel();
    // +-1 exactly, so that the subtraction below rounds once, the same on every device.
    torch::Tensor s = all.narrow(0, at, n).to(torch::kFloat32).mul_(2).sub_(1).to(theta.device());
    at += n;
    if (mask.defined()) {
      const torch::Tensor full = torch::zeros_like(theta).masked_scatter_(mask, s);
      theta.copy_(torch::where(mask, theta - full * options_.step, theta));
    } else {
      theta.sub_(s.view(theta.sizes()) * options_.step);
    }
  }
  fired_ = true;
  ++counts_.fires;
  counts_.payload_bytes += payload_bytes();
  return {};
}

Result<void> SignAnchor::restore(std::span<const torch::Tensor> averages, const AnchorCounts& counts) {
  const torch::NoGradGuard no_grad;
  bool fits = averages.size() == average_.size();
  for (size_t i = 0; fits && i < averages.size(); ++i) fits = averages[i].sizes() == average_[i].sizes();
  if (!fits)
    return Error{Code::kCorrupt, fmt::format("anchor: averages of {} parameters that are not the {} here",
                                             averages.size(), average_.size())};
  for (size_t i = 0; i < averages.size(); ++i) average_[i].copy_(averages[i]);
  counts_ = counts;
  fired_ = counts_.ticks % options_.every == 0;
  return {};
}

void SignAnchor::save(torch::serialize::OutputArchive& archive) const {
  const auto number = [](int64_t value) { return torch::tensor({value}, torch::kInt64); };
  archive.write("ticks", number(counts_.ticks));
  archive.write("fires", number(counts_.fires));
  archive.write("payload_bytes", number(counts_.payload_bytes));
  archive.write("refused_writes", number(counts_.refused_writes));
  archive.write("fired", number(fired_));
  archive.write("n", number(static_cast<int64_t>(average_.size())));
  for (size_t i = 0; i < average_.size(); ++i) archive.write(fmt::format("average{}", i), average_[i]);
}

Result<void> SignAnchor::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  try {
    const auto number = [&](const char* name) {
      torch::Tensor value;
      archive.read(name, value);
      return value.item<int64_t>();
    };
    const int64_t n = number("n");
    if (n != static_cast<int64_t>(average_.size()))
      return Error{Code::kCorrupt,
                   fmt::format("anchor: a checkpoint of {} parameters, here are {}", n, average_.size())};
    std::vector<torch::Tensor> average(average_.size());
    for (size_t i = 0; i < average.size(); ++i) {
      archive.read(fmt::format("average{}", i), average[i]);
      if (average[i].sizes() != average_[i].sizes())
        return Error{Code::kCorrupt,
                     fmt::format("anchor: parameter {} has another shape in the checkpoint", i)};
    }
    counts_ = {number("ticks"), number("fires"), number("payload_bytes"), number("refused_writes")};
    fired_ = number("fired") != 0;
    for (size_t i = 0; i < average.size(); ++i) average_[i].copy_(average[i]);
  } catch (const c10::Error& error) {
    return Error{Code::kCorrupt, fmt::format("anchor: {}", error.what_without_backtrace())};
  }
  return {};
}

}  // namespace forebay::train
