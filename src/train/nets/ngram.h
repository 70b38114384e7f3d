/// A table of hashed n-grams, injected into the residual streams at one block.
#pragma once

#include <string>

#include "model/config.h"
#include "train/nets/ops.h"
#include "train/nets/parameters.h"

namespace forebay::train {

struct NgramParameters {
  torch::Tensor table;                            // [rows, row_width]
  torch::Tensor key, value;                       // [S * D, width], [D, width]
  torch::Tensor norm_key, norm_query, norm_conv;  // [S * D], less one
  torch::Tensor conv;                             // [S * D, 1, K]
};
NgramParameters make_ngram_parameters(ParameterMaker& maker, const std::string& name,
                                      const ModelConfig& config);

/// ids [B, T] -> rows of the table [B, T, heads]: the hashes that the engine computes a token at a time.
torch::Tensor ngram_rows(const NgramConfig& config, const torch::Tensor& ids_BT);

/// X [B, T, S * D] with the injection added.
torch::Tensor ngram_injection(const NgramParameters& w, const ModelConfig& config,
                              const torch::Tensor& ids_BT, const torch::Tensor& x_BTW, Precision precision);

}  // namespace forebay::train
