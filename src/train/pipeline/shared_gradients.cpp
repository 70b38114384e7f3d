#include "train/pipeline/shared_gradients.h"

#include <algorithm>
#include <utility>

#include "train/pipeline/neighbours.h"

namespace forebay::train {

bool SharedGradients::is_here(const SharedParameter& shared) const {
  return std::find(shared.holders.begin(), shared.holders.end(), pipe_.rank()) != shared.holders.end();
}

torch::Tensor SharedGradients::parameter(const SharedParameter& shared) const {
  return net_.named_parameters()[shared.name];
}

void SharedGradients::begin() {
  before_.clear();
  for (const SharedParameter& shared : shared_) {
    if (!is_here(shared)) continue;
    torch::Tensor mine = parameter(shared);
    before_.push_back(std::exchange(mine.mutable_grad(), torch::Tensor()));
  }
}

Result<void> SharedGradients::end(View view, int64_t step) {
  const torch::NoGradGuard no_gradients;
  size_t n_here = 0;
  for (size_t i = 0; i < shared_.size(); ++i) {
    const SharedParameter& shared = shared_[i];
    if (!is_here(shared)) continue;
    torch::Tensor mine = parameter(shared);
    torch::Tensor sum = mine.grad().defined() ? mine.grad() : torch::zeros_like(mine);
    const size_t n_bytes = static_cast<size_t>(mine.numel()) * sizeof(float);
    const uint64_t tag = message_tag(Pass::kShared, view, Leg::kForward, step, i);
    const int first = shared.holders[0];
    if (pipe_.rank() != first) {
      TRY(pipe_.send(first, tag, bytes_of(sum)));
      const Bytes bytes = TRY(pipe_.recv(first, tag, n_bytes));
      sum = TRY(tensor_of(bytes, mine.sizes(), mine.device()));
    } else {
      for (size_t holder = 1; holder < shared.holders.size(); ++holder) {
        const Bytes bytes = TRY(pipe_.recv(shared.holders[holder], tag, n_bytes));
        const torch::Tensor other = TRY(tensor_of(bytes, mine.sizes(), mine.device()));
        sum = sum + other;
      }
      for (size_t holder = 1; holder < shared.holders.size(); ++holder)
        TRY(pipe_.send(shared.holders[holder], tag, bytes_of(sum)));
    }
    const torch::Tensor& before = before_[n_here++];
    mine.mutable_grad() = before.defined() ? before + sum : sum;
  }
  return {};
}

}  // namespace forebay::train
