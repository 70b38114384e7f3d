/// What the families share: norms, rotation, attention, feed-forward. Shapes: B sequences, T tokens, D width,
/// H heads. Everything here can be differentiated.
#pragma once

#include <cstdint>

#include <torch/torch.h>

namespace forebay::train {

/// What matrices are multiplied in. Norms, softmax, recurrences and losses are f32 in both.
enum class Precision { kF32, kBF16 };

/// x [.., in] times the rows of weight [out, in], plus bias [out] if there is one.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, Precision precision,
                     const torch::Tensor& bias = {});

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension, f32.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps);

/// Cosines and sines of T positions from 0 on, `stride` apart, [T, n_rot / 2] f32, computed in f64 as the
/// engine does.
struct Rotation {
  torch::Tensor cos, sin;
};
Rotation make_rotation(int64_t n_positions, int64_t stride, int64_t n_rot, double theta,
                       const torch::Device& device);
/// The first n_rot of d dimensions of x [.., T, d] rotated, pair (i, i + n_rot / 2).
torch::Tensor rotate(const torch::Tensor& x, const Rotation& rotation);

/// [T, T] bool: whether query t (row) is behind key s (column), and may not see it.
torch::Tensor future_mask(int64_t n_tokens, const torch::Device& device);

/// Causal attention of q [B, H, T, d] over k, v [B, H_kv, T, d]; query head h reads key head h / (H / H_kv).
/// `hidden` [B or 1, 1, T, T] bool: further keys that a query does not see. Returns [B, H, T, d]; the
/// probabilities [B, H, T, T] go to `probabilities` when wanted.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, double scale,
                     Precision precision, const torch::Tensor& hidden = {},
                     torch::Tensor* probabilities = nullptr);

/// down(silu(gate x) * up x)
torch::Tensor swiglu(const torch::Tensor& x, const torch::Tensor& gate, const torch::Tensor& up,
                     const torch::Tensor& down, Precision precision);

/// Per row of logits [.., V] the log-probability of ids [..], f32.
torch::Tensor log_probs(const torch::Tensor& logits, const torch::Tensor& ids);

}  // namespace forebay::train
