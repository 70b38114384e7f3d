/// AdamW over a module's parameters, with states that go into a checkpoint as they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace forebay::train {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // of matrices; norms, biases and other vectors keep their size
};

/// Confined. Parameters without gradient are left alone, states too.
class AdamW {
 public:
  AdamW(torch::nn::Module& module, const AdamWOptions& options);

  /// m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;  p <- p (1 - lr wd) - lr m^ / (sqrt(v^) + eps), with
  /// m^ and v^ corrected for having begun at zero.
  void step(double lr);
  void zero_grad();
  /// Scales all gradients so that their norm is at most `limit` (0: never), and returns the norm that they
  /// had.
  torch::Tensor clip(double limit);

  int64_t n_steps() const { return n_steps_; }
  /// "adam.m.NAME" and "adam.v.NAME"; the tensors themselves, so that writing to them restores a state.
  std::map<std::string, torch::Tensor> state() const;
  void set_n_steps(int64_t n) { n_steps_ = n; }

 private:
  struct Slot {
    std::string name;
    torch::Tensor parameter, m, v;
    bool decays;
  };
  AdamWOptions options_;
  std::vector<Slot> slots_;
  int64_t n_steps_ = 0;
};

}  // namespace forebay::train
