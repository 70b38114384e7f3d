/// Parameters under their published names, and what they are before training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

namespace forebay::train {

/// What a new parameter holds.
struct Init {
  enum class Kind { kConstant, kNormal, kUniform, kLogUniform };
  Kind kind = Kind::kConstant;
  double a = 0;  // the constant; the standard deviation; the lower end
  double b = 0;  // the upper end

  static Init constant(double value) { return {Kind::kConstant, value, 0}; }
  static Init normal(double deviation) { return {Kind::kNormal, deviation, 0}; }
  static Init uniform(double low, double high) { return {Kind::kUniform, low, high}; }
  /// The logarithm of a uniform number.
  static Init log_uniform(double low, double high) { return {Kind::kLogUniform, low, high}; }
  /// A matrix whose rows have `in` values; the deviation keeps the size of what passes, a little damped.
  static Init matrix(int64_t in);
  /// A matrix that writes to the residual: what all blocks add adds up to about one.
  static Init into_residual(int64_t in, int64_t n_blocks);
};

/// Makes f32 parameters in a tree of modules: "model.layers.0.mlp.up_proj.weight" is the parameter `weight`
/// of the module up_proj of ... of the root, and named_parameters() of the root gives back the full names.
/// What a parameter starts as is a function of seed, name and place alone, so that every split of a model
/// into stages starts the same. Without a seed they hold nothing yet.
class ParameterMaker {
 public:
  ParameterMaker(torch::nn::Module& root, std::optional<uint64_t> seed) : root_(root), seed_(seed) {}

  torch::Tensor make(std::string_view name, std::vector<int64_t> shape, const Init& init);

 private:
  torch::nn::Module& root_;
  std::optional<uint64_t> seed_;
};

/// The values that make() puts there, for tests: element i of the parameter `name`.
std::vector<float> initial_values(uint64_t seed, std::string_view name, int64_t n, const Init& init);

}  // namespace forebay::train
