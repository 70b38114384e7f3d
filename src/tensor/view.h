/// Non-owning views. A view is not stored past the call unless the header that takes it says what keeps it
/// alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace forebay {

enum class Device : uint8_t { kCpu };

/// A matrix of activations: rows of `cols` contiguous values, `stride` values apart.
template <typename T>
struct TensorView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  Device device = Device::kCpu;

  TensorView() = default;
  TensorView(T* data, int64_t rows, int64_t cols) : TensorView(data, rows, cols, cols) {}
  TensorView(T* data, int64_t rows, int64_t cols, int64_t stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}

  T* row(int64_t r) const { return data + r * stride; }
  TensorView slice_rows(int64_t first, int64_t n) const { return {row(first), n, cols, stride}; }
  TensorView slice_cols(int64_t first, int64_t n) const { return {data + first, rows, n, stride}; }
  operator TensorView<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, stride}; }
};

/// A weight matrix as stored: n_rows outputs of n_cols inputs in blocks of `type`, any alignment.
struct MatrixView {
  const std::byte* data = nullptr;
  DType type = DType::kF32;
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  int64_t row_stride_bytes = 0;
  Device device = Device::kCpu;

  const std::byte* row(int64_t r) const { return data + r * row_stride_bytes; }
  bool empty() const { return data == nullptr; }
};

}  // namespace forebay
