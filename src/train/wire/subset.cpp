#include "train/wire/subset.h"

#include <algorithm>

#include "train/wire/prf.h"
#include "train/wire/prf_tensor.h"

namespace forebay::train {
namespace {

/// Boundaries of a process times micro-batches in flight.
constexpr size_t kKeptMasks = 64;

uint64_t stream_of(const WireKey& key, MaskScope scope) {
  const uint64_t step = static_cast<uint64_t>(key.step);
  const uint64_t boundary = static_cast<uint64_t>(key.boundary);
  if (scope == MaskScope::kMicroBatch)
    return prf_stream(PrfUse::kMask, {key.seed, step, boundary, static_cast<uint64_t>(key.micro_batch)});
  return prf_stream(PrfUse::kMask, {key.seed, step, boundary});
}

}  // namespace

torch::Tensor Subset::take(const torch::Tensor& x_NW) const {
  return index.dim() == 1 ? x_NW.index_select(1, index) : x_NW.gather(1, index);
}

torch::Tensor Subset::spread(const torch::Tensor& x_NK) const {
  torch::Tensor out = torch::zeros({x_NK.size(0), width}, x_NK.options());
  return index.dim() == 1 ? out.index_copy_(1, index, x_NK) : out.scatter_(1, index, x_NK);
}

Subset MaskSource::subset(const WireKey& key, int64_t n_rows, int64_t width, torch::Device device) {
  const uint64_t stream = stream_of(key, scope_);
  if (scope_ == MaskScope::kToken) return token_subset(stream, key, n_rows, width, device);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.stream == stream && kept.device == device && kept.subset.width == width;
  });
  if (found != kept_.end()) return found->subset;
  const torch::Tensor index = torch::tensor(prf_exact_k(stream, width, k_), torch::kInt64);
  if (kept_.size() == kKeptMasks) kept_.erase(kept_.begin());
  kept_.push_back({stream, device, {index.to(device), width}});
  return kept_.back().subset;
}

Subset MaskSource::token_subset(uint64_t stream, const WireKey& key, int64_t n_rows, int64_t width,
                                torch::Device device) {
  const bool again = !last_rows_.empty() && last_rows_[0].stream == stream &&
                     last_rows_[0].device == device && last_first_row_ == key.first_row &&
                     last_rows_[0].subset.width == width && last_rows_[0].subset.index.size(0) == n_rows;
  if (again) return last_rows_[0].subset;
  last_rows_.clear();
  last_rows_.push_back(
      {stream, device, {prf_exact_k_rows(stream, key.first_row, n_rows, width, k_, device), width}});
  last_first_row_ = key.first_row;
  return last_rows_[0].subset;
}

}  // namespace forebay::train
