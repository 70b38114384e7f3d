#include "train/anchor/delta_tensors.h"

#include <cstring>

#include <fmt/format.h>

#include "tensor/half.h"

namespace forebay::train {

Result<Bf16Tensors> bf16_of(const NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  Bf16Tensors out;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor here = tensor.detach().cpu().contiguous();
    Bf16Tensor& values = out[name];
    for (const int64_t dim : here.sizes()) values.shape.push_back(static_cast<uint64_t>(dim));
    values.bits.resize(static_cast<size_t>(here.numel()));
    if (here.scalar_type() == torch::kBFloat16) {
      std::memcpy(values.bits.data(), here.data_ptr(), values.bits.size() * 2);
    } else if (here.scalar_type() == torch::kFloat32) {
      const float* data = here.data_ptr<float>();
      for (size_t i = 0; i < values.bits.size(); ++i) values.bits[i] = bf16_from_f32(data[i]);
    } else {
      return Error{Code::kUnsupported, fmt::format("delta: {} is {}, wanted f32 or bf16", name,
                                                   torch::toString(here.scalar_type()))};
    }
  }
  return out;
}

Result<void> apply_delta(const Delta& delta, uint64_t at_step, const NamedTensors& tensors) {
  const torch::NoGradGuard no_grad;
  Bf16Tensors values = TRY(bf16_of(tensors));
  TRY(apply_delta(delta, at_step, values));
  for (const DeltaTensor& change : delta.tensors) {
    if (change.n_changed == 0) continue;
    torch::Tensor target = tensors.at(change.name).detach();
    torch::Tensor here = target.cpu().contiguous();
    for_each_change(delta, change, [&](uint64_t element, uint16_t bits) {
      if (here.scalar_type() == torch::kBFloat16) {
        std::memcpy(static_cast<char*>(here.data_ptr()) + 2 * element, &bits, 2);
      } else {
        const uint32_t wide = uint32_t{bits} << 16;
        std::memcpy(static_cast<char*>(here.data_ptr()) + 4 * element, &wide, 4);
      }
    });
    // On the CPU, `here` may be the target itself.
    if (here.data_ptr() != target.data_ptr()) target.copy_(here);
  }
  return {};
}

}  // namespace forebay::train
