#include "train/nets/device.h"

#include <fmt/format.h>

#include "core/parse.h"

namespace forebay::train {

Result<torch::Device> device_named(const std::string& key, const std::string& name) {
  if (name == "cpu") return torch::Device(torch::kCPU);
  constexpr std::string_view kCuda = "cuda";
  const std::string_view rest = name.starts_with(kCuda) ? std::string_view(name).substr(kCuda.size()) : "?";
  Result<int64_t> index = -1;
  if (!rest.empty()) index = rest[0] == ':' ? parse_int(rest.substr(1), 0, 127) : Result<int64_t>(Error{});
  if (!index)
    return Error{Code::kInvalidArgument, fmt::format("{} is '{}': wanted cpu, cuda or cuda:N", key, name)};
  if (!torch::cuda::is_available())
    return Error{Code::kUnsupported, fmt::format("{} is '{}': no CUDA device here", key, name)};
  const auto n_devices = static_cast<int64_t>(torch::cuda::device_count());
  if (*index >= n_devices)
    return Error{Code::kUnsupported, fmt::format("{} is '{}': {} CUDA devices here", key, name, n_devices)};
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(*index));
}

}  // namespace forebay::train
