/// Writes a file in one go. Wide elements come first, so that every tensor is aligned to its own.
#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "safetensors/json.h"
#include "safetensors/safetensors.h"
#include "safetensors/types.h"

namespace forebay {
namespace {

using namespace safetensors;

constexpr uint64_t kHeaderAlignment = 8;
Error invalid(const std::string& name, std::string_view problem) {
  return {Code::kInvalidArgument, fmt::format("tensor {}: {}", quote(name), problem)};
}

Result<std::vector<const SafeTensorData*>> check_and_sort(std::span<const SafeTensorData> tensors) {
  std::set<std::string_view> names;
  std::vector<const SafeTensorData*> sorted;
  for (const SafeTensorData& tensor : tensors) {
    if (tensor.name == kMetadataKey) return invalid(tensor.name, "a reserved name");
    if (!names.insert(tensor.name).second) return invalid(tensor.name, "given twice");
    const std::optional<uint64_t> n_bytes = checked_bytes(tensor.type, tensor.shape);
    if (!n_bytes || *n_bytes != tensor.bytes.size())
      return invalid(tensor.name, fmt::format("{} bytes given, {} {} needs {}", tensor.bytes.size(),
                                              name_of(tensor.type), shape_string(tensor.shape),
                                              n_bytes ? fmt::to_string(*n_bytes) : "2^63 or more"));
    sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(), [](const SafeTensorData* a, const SafeTensorData* b) {
    const int a_bytes = bytes_of(a->type), b_bytes = bytes_of(b->type);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a->name < b->name;
  });
  return sorted;
}

/// A JSON string. Throws what dump throws for text that is not UTF-8.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump();
}

Result<std::string> header_text(std::span<const SafeTensorData* const> sorted,
                                const std::map<std::string, std::string>& metadata) {
  try {
    std::vector<std::string> entries;
    if (!metadata.empty())
      entries.push_back(fmt::format("\"{}\":{}", kMetadataKey, nlohmann::json(metadata).dump()));
    uint64_t offset = 0;
    for (const SafeTensorData* tensor : sorted) {
      const uint64_t end = offset + tensor->bytes.size();
      entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                    json_string(tensor->name), name_of(tensor->type),
                                    fmt::join(tensor->shape, ","), offset, end));
      offset = end;
    }
    std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
    text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    return Error{Code::kInvalidArgument, "a tensor's name or a metadata string is not UTF-8"};
  }
}

}  // namespace

Result<void> write_safetensors(Storage& storage, const Path& path, std::span<const SafeTensorData> tensors,
                               const std::map<std::string, std::string>& metadata) {
  auto sorted = check_and_sort(tensors);
  if (!sorted) return std::move(sorted).error().in(path.string());
  const Result<std::string> text = header_text(*sorted, metadata);
  if (!text) return Error(text.error()).in(path.string());

  AtomicFile file = TRY(AtomicFile::create(storage, path));
  const uint64_t n_bytes = text->size();
  TRY(file.file().append(std::as_bytes(std::span(&n_bytes, 1))));
  TRY(file.file().append(std::as_bytes(std::span(*text))));
  for (const SafeTensorData* tensor : *sorted) TRY(file.file().append(tensor->bytes));
  return file.commit();
}

}  // namespace forebay
