#include "train/nets/parameters.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <span>

#include "core/bytes.h"

namespace forebay::train {
namespace {

/// SplitMix64's mixing function.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// (0, 1]
double unit(uint64_t bits) {
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

/// The module of this name below `parent`, made when it is not there.
torch::nn::Module& child_of(torch::nn::Module& parent, const std::string& name) {
  for (const auto& item : parent.named_children())
    if (item.key() == name) return *item.value();
  return *parent.register_module(name, std::make_shared<torch::nn::Module>());
}

}  // namespace

Init Init::matrix(int64_t in) {
  return normal(std::sqrt(0.4 / static_cast<double>(in)));
}

Init Init::into_residual(int64_t in, int64_t n_blocks) {
  return normal(matrix(in).a / std::sqrt(2.0 * static_cast<double>(n_blocks)));
}

std::vector<float> initial_values(uint64_t seed, std::string_view name, int64_t n, const Init& init) {
  std::vector<float> values(static_cast<size_t>(n), static_cast<float>(init.a));
  if (init.kind == Init::Kind::kConstant) return values;
  const uint64_t key = mix(seed ^ mix(checksum(std::as_bytes(std::span(name)))));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = mix(key + static_cast<uint64_t>(i));
    const double u = unit(bits);
    double value = 0;
    if (init.kind == Init::Kind::kNormal)  // Box and Muller
      value = init.a * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * unit(mix(bits)));
    else if (init.kind == Init::Kind::kUniform)
      value = init.a + (init.b - init.a) * u;
    else
      value = std::log(init.a + (init.b - init.a) * u);
    values[static_cast<size_t>(i)] = static_cast<float>(value);
  }
  return values;
}

torch::Tensor ParameterMaker::make(std::string_view name, std::vector<int64_t> shape, const Init& init) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  if (seed_) {
    const std::vector<float> values = initial_values(*seed_, name, tensor.numel(), init);
    std::memcpy(tensor.data_ptr<float>(), values.data(), values.size() * sizeof(float));
  }
  torch::nn::Module* module = &root_;
  size_t begin = 0;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', begin)) {
    module = &child_of(*module, std::string(name.substr(begin, dot - begin)));
    begin = dot + 1;
  }
  return module->register_parameter(std::string(name.substr(begin)), tensor);
}

}  // namespace forebay::train
