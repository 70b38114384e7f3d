#include "train/fit/checkpoint.h"

#include <cstring>

#include <fmt/format.h>

#include "safetensors/safetensors.h"

namespace forebay::train {

Result<void> save_state(Storage& storage, const Path& path, const RunState& state) {
  std::vector<torch::Tensor> on_cpu;  // what the entries point to
  std::vector<SafeTensorData> entries;
  for (const auto& [name, tensor] : state.tensors) {
    on_cpu.push_back(tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous());
    const torch::Tensor& values = on_cpu.back();
    entries.push_back({name,
                       SafeType::kF32,
                       {values.sizes().begin(), values.sizes().end()},
                       {reinterpret_cast<const std::byte*>(values.data_ptr<float>()), values.nbytes()}});
  }
  return write_safetensors(storage, path, entries, state.facts);
}

Result<std::map<std::string, std::string>> load_state(Storage& storage, const Path& path,
                                                      const std::map<std::string, torch::Tensor>& into) {
  const torch::NoGradGuard no_gradients;
  const SafetensorsFile file = TRY(SafetensorsFile::open(storage, path));
  for (const auto& [name, tensor] : into) {
    const SafeTensor* found = file.find(name);
    const std::vector<uint64_t> shape(tensor.sizes().begin(), tensor.sizes().end());
    if (found == nullptr || found->type != SafeType::kF32 || found->shape != shape)
      return Error{Code::kCorrupt, fmt::format("{}: tensor {} is missing or of another shape than this run's",
                                               path.string(), name)};
    torch::Tensor values = torch::empty(tensor.sizes(), torch::kFloat32);
    std::memcpy(values.data_ptr<float>(), file.bytes(*found).data(), values.nbytes());
    torch::Tensor to = tensor;
    to.copy_(values);
  }
  return file.metadata();
}

}  // namespace forebay::train
