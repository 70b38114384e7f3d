/// What the tests of nets share.
#pragma once

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "temporary_directory.h"
#include "test_models.h"
#include "train/nets/files.h"
#include "train/nets/net.h"

namespace forebay::train::testing {

using forebay::testing::converted_vectors;
using forebay::testing::embedded_model;
using forebay::testing::expected_of;
using forebay::testing::LoadedModel;

/// Small products are slower on several threads, and the machine has other tests to run.
inline const bool kOneThread = [] {
  torch::set_num_threads(1);
  return true;
}();

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
inline void must(Result<void> result) {
  if (!result) throw std::runtime_error(result.error().message);
}

inline torch::Tensor ids_tensor(const std::vector<int32_t>& ids) {
  return torch::tensor(ids, torch::kInt32).to(torch::kInt64).unsqueeze(0);
}

/// The engine's logits of every position, [ids][V], in exact mode.
inline torch::Tensor engine_logits(const std::filesystem::path& gguf, const std::vector<int32_t>& ids) {
  LoadedModel model(gguf, 1);
  const std::vector<float> values = model.logits(ids);
  return torch::tensor(values).view({static_cast<int64_t>(ids.size()), -1});
}

inline double worst_log_prob(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.log_softmax(-1) - b.log_softmax(-1)).abs().max().item<double>();
}

inline std::filesystem::path vectors_of(const std::string& family) {
  return std::filesystem::path(FOREBAY_TEST_DATA) / "vectors" / family;
}

/// Ids with some structure and no meaning.
inline torch::Tensor some_ids(int64_t n_sequences, int64_t n_tokens, int64_t n_vocab, int64_t seed) {
  return (torch::arange(n_sequences * n_tokens) * (2 * seed + 7) +
          torch::arange(n_sequences * n_tokens).pow(2) * 3)
      .remainder(n_vocab)
      .view({n_sequences, n_tokens});
}

}  // namespace forebay::train::testing
