/// What the runners share at a boundary: rows out of batches and back, sums in a fixed order, exceptions of
/// libtorch as errors.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

namespace forebay::train {

/// [B, T, W] of any type -> [B * T, W] f32, which is what codecs see.
torch::Tensor as_rows(const torch::Tensor& x_BTW);
/// Rows back in the shape, type and place of `like_BTW`.
torch::Tensor as_batch(const torch::Tensor& x_NW, const torch::Tensor& like_BTW);

/// The square root of the sum in the order of the names, a name that comes twice counted once.
double norm_of(std::vector<std::pair<std::string, double>> squares);

/// The first line of what a library threw.
Error error_of(const std::exception& exception);

/// Runs `work`; what it throws becomes an error.
template <typename Work>
Result<void> catching(Work&& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, "out of memory"};
  } catch (const std::exception& exception) {
    return error_of(exception);
  }
  return {};
}

}  // namespace forebay::train
