#include "train/grpo/run_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/hash.h"
#include "safetensors/safetensors.h"

namespace forebay::train {
namespace {

constexpr std::string_view kVersion = "forebay-grpo-1";

std::span<const std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

uint64_t tensors_hash(const std::map<std::string, torch::Tensor>& tensors) {
  std::string sums;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor values = tensor.detach().cpu().contiguous();
    sums += fmt::format("{} {} {:016x}\n", name, fmt::join(values.sizes().vec(), "x"),
                        fast_checksum(bytes_of(values)));
  }
  return fast_checksum(std::as_bytes(std::span(sums)));
}

Result<void> write_run_file(Storage& storage, const Path& path, const RunFile& run) {
  std::map<std::string, torch::Tensor> values;  // what the entries point to
  std::vector<SafeTensorData> entries;
  for (const auto& [name, tensor] : run.tensors) {
    const torch::Tensor& v = values[name] = tensor.detach().cpu().contiguous();
    entries.push_back({.name = name,
                       .type = v.scalar_type() == torch::kInt64 ? SafeType::kI64 : SafeType::kF32,
                       .shape = {v.sizes().begin(), v.sizes().end()},
                       .bytes = bytes_of(v)});
  }
  std::map<std::string, std::string> facts = run.facts;
  facts["version"] = kVersion;
  facts["hash"] = fmt::format("{:016x}", tensors_hash(values));
  return write_safetensors(storage, path, entries, facts);
}

Result<RunFile> read_run_file(Storage& storage, const Path& path) {
  const SafetensorsFile file = TRY(SafetensorsFile::open(storage, path));
  RunFile run;
  run.facts = file.metadata();
  if (run.facts["version"] != kVersion)
    return Error{Code::kCorrupt, fmt::format("{}: version '{}', expected '{}'", path.string(),
                                             run.facts["version"], kVersion)};
  for (const SafeTensor& entry : file.tensors()) {
    if (entry.type != SafeType::kF32 && entry.type != SafeType::kI64)
      return Error{Code::kCorrupt, fmt::format("{}: tensor {} is {}, expected F32 or I64", path.string(),
                                               entry.name, name_of(entry.type))};
    const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
    torch::Tensor v = torch::empty(shape, entry.type == SafeType::kI64 ? torch::kInt64 : torch::kFloat32);
    std::memcpy(v.data_ptr(), file.bytes(entry).data(), v.nbytes());
    run.tensors[entry.name] = v;
  }
  if (run.facts["hash"] != fmt::format("{:016x}", tensors_hash(run.tensors)))
    return Error{Code::kCorrupt, path.string() + ": damaged: its tensors are not those that were written"};
  return run;
}

Path run_file_path(const Path& directory, int64_t step) {
  return directory / fmt::format("step-{:06}.ckpt", step);
}

Result<std::optional<int64_t>> last_run_file(Storage& storage, const Path& directory) {
  std::optional<int64_t> last;
  const std::vector<FileEntry> files = TRY(storage.list(directory));
  for (const FileEntry& file : files) {
    if (!file.name.starts_with("step-") || !file.name.ends_with(".ckpt")) continue;
    const std::string_view digits = std::string_view(file.name).substr(5, file.name.size() - 10);
    int64_t step = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
    if (error != std::errc{} || end != digits.data() + digits.size()) continue;
    last = std::max(last.value_or(step), step);
  }
  return last;
}

}  // namespace forebay::train
