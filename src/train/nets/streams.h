/// Hyper-connections: several residual streams, of which every sub-block reads a mix and to which it writes
/// with weights of its own. X is [B, T, S * D], stream by stream.
#pragma once

#include <string>

#include "train/nets/ops.h"
#include "train/nets/parameters.h"

namespace forebay::train {

struct StreamWeights {
  torch::Tensor norm;    // [S * D], less one
  torch::Tensor down;    // [R, S * D]
  torch::Tensor up;      // [S * D, R]
  torch::Tensor inject;  // [S, S * D]; undefined for final reads
};
StreamWeights make_stream_weights(ParameterMaker& maker, const std::string& name, int64_t n_streams,
                                  int64_t d_model, int64_t low_rank, bool has_inject);

struct StreamRead {
  torch::Tensor x;       // [B, T, D]
  torch::Tensor weight;  // [B, T, S], in (0, 2); undefined without inject
};
/// N = rms_norm of each stream; gate = sigmoid(up silu(down N / S)); x = mean_s gate * N; weight = 2
/// sigmoid(inject N / S).
StreamRead read_streams(const StreamWeights& w, const torch::Tensor& x_BTW, int64_t n_streams, double eps,
                        Precision precision);
/// X_s + weight_s y
torch::Tensor write_streams(const torch::Tensor& x_BTW, const torch::Tensor& weight,
                            const torch::Tensor& y_BTD);

}  // namespace forebay::train
