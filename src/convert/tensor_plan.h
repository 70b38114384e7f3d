/// Which GGUF tensors a checkpoint becomes, and from what. One file per part of a block:
///   plan_blocks.cpp     attention, gated delta rule, dense feed-forward, experts
///   plan_streams.cpp    hyper-connections and the n-gram embedding (qwen4exp)
///   plan_model.cpp      the order of a whole trunk and of a draft head
#pragma once

#include <string>
#include <vector>

#include "convert/checkpoint.h"
#include "convert/row_source.h"
#include "convert/type_plan.h"

namespace forebay::convert {

struct OutputTensor {
  std::string name;
  std::vector<uint64_t> ne;  // as in GGUF, ne[0] contiguous
  TensorRole role;
  RowSource source;
};

/// Collects the tensors of one file. The functions add one GGUF tensor each and take names in both
/// vocabularies; they fail as Checkpoint::take() does.
class TensorPlan {
 public:
  TensorPlan(const CheckpointConfig& config, Checkpoint& checkpoint)
      : config_(config), checkpoint_(checkpoint) {}

  const CheckpointConfig& config() const { return config_; }
  Checkpoint& checkpoint() { return checkpoint_; }
  std::vector<OutputTensor>& tensors() { return tensors_; }

  void add(std::string name, std::vector<uint64_t> ne, TensorRole role, RowSource source) {
    tensors_.push_back({std::move(name), std::move(ne), role, std::move(source)});
  }
  /// out rows of `in` values, unchanged.
  Result<void> matrix(std::string name, std::string_view from, uint64_t in, uint64_t out,
                      TensorRole role = TensorRole::kMatrix);
  /// n values, unchanged.
  Result<void> vector(std::string name, std::string_view from, uint64_t n);
  /// Norm weights, with one added where the family stores differences from one.
  Result<void> norm(std::string name, std::string_view from, uint64_t n);

  // Parts of a block: all tensors whose names begin with `to` ("blk.3."), from those beginning with `from`
  // ("layers.3.").
  Result<void> attention(const std::string& to, const std::string& from);
  Result<void> indexer(const std::string& to, const std::string& from);
  Result<void> gated_delta(const std::string& to, const std::string& from);
  Result<void> feed_forward(const std::string& to, const std::string& from);
  Result<void> experts(const std::string& to, const std::string& from);
  /// A read (and, in a block, write) of the residual streams: to + "_norm.weight", ...
  Result<void> streams(const std::string& to, const std::string& from, bool has_inject);
  Result<void> ngram_table();
  Result<void> ngram_injection(const std::string& to, const std::string& from);

  /// Everything but the draft head.
  Result<void> trunk();
  /// The draft head as the block behind the trunk.
  Result<void> draft_head();

 private:
  Result<void> block(const std::string& to, const std::string& from, bool is_recurrent, bool has_ngrams);

  const CheckpointConfig& config_;
  Checkpoint& checkpoint_;
  std::vector<OutputTensor> tensors_;
};

}  // namespace forebay::convert
