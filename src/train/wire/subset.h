/// Which coordinates of a row are sent: exactly k, drawn by the PRF, so that the receiver knows them without
/// a byte.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "train/wire/codec.h"

namespace forebay::train {

/// How long a mask stays: for all rows of a step, of a micro-batch, or for one row.
enum class MaskScope { kStep, kMicroBatch, kToken };

/// k of `width` coordinates: the same for all rows, index [k], or each row's own, index [N, k]. Ascending.
struct Subset {
  torch::Tensor index;
  int64_t width = 0;

  int64_t k() const { return index.size(-1); }
  /// [N, width] -> the chosen coordinates, [N, k].
  torch::Tensor take(const torch::Tensor& x_NW) const;
  /// [N, k] -> [N, width], zero elsewhere.
  torch::Tensor spread(const torch::Tensor& x_NK) const;
};

/// Makes subsets, and keeps the last few that serve many rows. The same for both legs. Confined.
class MaskSource {
 public:
  MaskSource(int64_t k, MaskScope scope) : k_(k), scope_(scope) {}
  int64_t k() const { return k_; }
  MaskScope scope() const { return scope_; }
  Subset subset(const WireKey& key, int64_t n_rows, int64_t width, torch::Device device);

 private:
  struct Kept {
    uint64_t stream;
    torch::Device device;
    Subset subset;
  };

  Subset token_subset(uint64_t stream, const WireKey& key, int64_t n_rows, int64_t width,
                      torch::Device device);

  int64_t k_;
  MaskScope scope_;
  std::vector<Kept> kept_;       // oldest first
  std::vector<Kept> last_rows_;  // masks per row: of the last call, since a view asks twice
  int64_t last_first_row_ = 0;
};

}  // namespace forebay::train
