/// Reads a file's header: a length, a JSON table, and offsets that together cover the rest of the file.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "safetensors/json.h"
#include "safetensors/safetensors.h"
#include "safetensors/types.h"

namespace forebay {
namespace {

using namespace safetensors;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are used as they lie in the file");

constexpr uint64_t kLengthBytes = 8;
// The reference implementation's own limit, so that no file it wrote is refused.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
Error corrupt(std::string message) {
  return {Code::kCorrupt, std::move(message)};
}

/// The JSON text behind the length.
Result<std::string_view> header_text(std::span<const std::byte> bytes, uint64_t file_bytes) {
  if (bytes.size() < kLengthBytes)
    return corrupt(
        fmt::format("header length: needs {} bytes, the file ends at {}", kLengthBytes, bytes.size()));
  uint64_t n_bytes;
  std::memcpy(&n_bytes, bytes.data(), sizeof n_bytes);
  const uint64_t limit =
      std::min(std::min<uint64_t>(bytes.size(), file_bytes) - kLengthBytes, kMaxHeaderBytes);
  if (n_bytes > limit)
    return corrupt(fmt::format("header of {} bytes at offset {}: the file ends at {}, and the limit is {}",
                               n_bytes, kLengthBytes, file_bytes, kMaxHeaderBytes));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, n_bytes);
}

Result<std::vector<uint64_t>> read_counts(const json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_array()) return corrupt(fmt::format("\"{}\": no list", key));
  std::vector<uint64_t> counts;
  for (const json& item : *at) {
    if (!item.is_number_unsigned())
      return corrupt(fmt::format("\"{}\": {}, wanted integers of 0 or more", key, quote(item.dump())));
    counts.push_back(item.get<uint64_t>());
  }
  return counts;
}

/// Offsets in the result are still relative to the data that follows the header.
Result<SafeTensor> read_tensor(const std::string& name, const json& entry) {
  if (!entry.is_object()) return corrupt("not an object");
  SafeTensor tensor;
  tensor.name = name;
  const auto type_name = entry.find("dtype");
  if (type_name == entry.end() || !type_name->is_string()) return corrupt("\"dtype\": no string");
  const auto& type_text = type_name->get_ref<const std::string&>();
  const std::optional<SafeType> type = type_from_name(type_text);
  if (!type)
    return Error{Code::kUnsupported,
                 fmt::format("\"dtype\": {}, wanted F64, F32, F16, BF16, F8_E4M3, I64, I32, I16, "
                             "I8, U8 or BOOL",
                             quote(type_text))};
  tensor.type = *type;
  tensor.shape = TRY(read_counts(entry, "shape"));
  const std::vector<uint64_t> offsets = TRY(read_counts(entry, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    return corrupt(fmt::format("\"data_offsets\": {}, wanted [begin, end]", shape_string(offsets)));
  tensor.offset = offsets[0];
  tensor.bytes = offsets[1] - offsets[0];
  const std::optional<uint64_t> n_bytes = checked_bytes(tensor.type, tensor.shape);
  if (!n_bytes)
    return corrupt(
        fmt::format("{} {}: more than 2^63 - 1 bytes", name_of(tensor.type), shape_string(tensor.shape)));
  if (*n_bytes != tensor.bytes)
    return corrupt(fmt::format("{} {} needs {} bytes, \"data_offsets\" {} have {}", name_of(tensor.type),
                               shape_string(tensor.shape), *n_bytes, shape_string(offsets), tensor.bytes));
  return tensor;
}

Result<void> read_metadata(const json& entry, std::map<std::string, std::string>& metadata) {
  if (!entry.is_object()) return corrupt("not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return corrupt(fmt::format("{}: not a string", quote(key)));
    metadata[key] = value.get<std::string>();
  }
  return {};
}

/// The format has no gaps: sorted, the tensors lie side by side and fill the file.
Result<void> place_tensors(std::vector<SafeTensor>& tensors, uint64_t data_offset, uint64_t file_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const SafeTensor& a, const SafeTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  const uint64_t data_bytes = file_bytes - data_offset;
  uint64_t end = 0;
  for (SafeTensor& tensor : tensors) {
    if (tensor.offset > data_bytes || tensor.bytes > data_bytes - tensor.offset)
      return corrupt(fmt::format("tensor {}: offset {} and size {} + {} of header, the file ends at {}",
                                 quote(tensor.name), tensor.offset, tensor.bytes, data_offset, file_bytes));
    if (tensor.offset != end)
      return corrupt(fmt::format("tensor {}: begins at {}, the one before it ends at {}", quote(tensor.name),
                                 tensor.offset, end));
    end += tensor.bytes;
    tensor.offset += data_offset;
  }
  if (end != data_bytes)
    return corrupt(fmt::format("the last tensor ends at {}, the file at {}", data_offset + end, file_bytes));
  return {};
}

Result<std::vector<SafeTensor>> parse(std::span<const std::byte> bytes, uint64_t file_bytes,
                                      std::map<std::string, std::string>* metadata) {
  const std::string_view text = TRY(header_text(bytes, file_bytes));
  Result<json> header = parse_json(text);
  if (!header) return std::move(header).error().in("header");
  if (!header->is_object()) return corrupt("header: not a JSON object");
  std::vector<SafeTensor> tensors;
  for (const auto& [name, entry] : header->items()) {
    if (name == kMetadataKey) {
      std::map<std::string, std::string> unwanted;
      Result<void> read = read_metadata(entry, metadata != nullptr ? *metadata : unwanted);
      if (!read) return std::move(read).error().in(kMetadataKey);
      continue;
    }
    Result<SafeTensor> tensor = read_tensor(name, entry);
    if (!tensor) return std::move(tensor).error().in("tensor " + quote(name));
    tensors.push_back(*std::move(tensor));
  }
  TRY(place_tensors(tensors, kLengthBytes + text.size(), file_bytes));
  return tensors;
}

}  // namespace

Result<std::vector<SafeTensor>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                         uint64_t file_bytes,
                                                         std::map<std::string, std::string>* metadata) {
  try {
    return parse(bytes, file_bytes, metadata);
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory,
                 fmt::format("header of a file of {} bytes: no memory to hold it", file_bytes)};
  }
}

}  // namespace forebay
