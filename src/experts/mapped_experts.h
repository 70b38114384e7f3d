#pragma once

#include <vector>

#include "core/path.h"
#include "experts/expert_source.h"

namespace forebay {

/// n_experts matrices of the same shape, `expert_stride` bytes apart.
struct ExpertMatrices {
  MatrixView first;
  int64_t expert_stride = 0;
  int64_t n_experts = 0;
  // The same bytes in the file, for who reads them from there.
  Path file;
  uint64_t file_offset = 0;

  MatrixView expert(int64_t e) const {
    MatrixView m = first;
    m.data += e * expert_stride;
    return m;
  }
};

/// The expert planes of one block as they lie in the mapped file. A block without experts has n_experts 0.
struct ExpertPlanes {
  ExpertMatrices gate, up, down;
};

/// Experts in place in the mapped file: everything is always available, the system decides what is in memory.
class MappedExperts : public ExpertSource {
 public:
  explicit MappedExperts(std::vector<ExpertPlanes> blocks) : blocks_(std::move(blocks)) {}
  Result<ExpertLease> request(int block, std::span<const int32_t> experts) override;
  int64_t max_experts(int block) const override { return blocks_[block].gate.n_experts; }

 protected:
  Result<std::span<const ResidentExpert>> take_ready() override;
  void end_lease() override { leased_.clear(); }

 private:
  std::vector<ExpertPlanes> blocks_;
  std::vector<ResidentExpert> leased_;
  bool taken_ = false;
};

}  // namespace forebay
