#include "train/comm/tensor_header.h"

#include <fmt/format.h>

#include "core/bytes.h"

namespace forebay::train {
namespace {

constexpr uint32_t kMagic = 0x4e544246;  // "FBTN"
constexpr uint32_t kVersion = 1;
constexpr size_t kFixedBytes = 16, kChecksumBytes = 8, kTensorBytes = 20;  // the last: at least
constexpr uint64_t kMostBytes = uint64_t{1} << 62;

constexpr std::pair<std::string_view, size_t> kTypes[] = {{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2},
                                                          {"i64", 8}, {"i32", 4}, {"u8", 1},  {"bool", 1}};

Error corrupt(std::string_view field, uint64_t value, std::string_view wanted) {
  return {Code::kCorrupt, fmt::format("a tensor message whose {} is {:#x}, wanted {}", field, value, wanted)};
}

/// Reads on, and never past the end.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  Result<T> number(std::string_view field) {
    const std::span<const std::byte> own = TRY(take(sizeof(T), field));
    return get_le<T>(own, 0);
  }
  Result<std::string> text(size_t n, std::string_view field) {
    const std::span<const std::byte> own = TRY(take(n, field));
    return std::string(reinterpret_cast<const char*>(own.data()), own.size());
  }
  size_t left() const { return bytes_.size(); }

 private:
  Result<std::span<const std::byte>> take(size_t n, std::string_view field) {
    if (n > bytes_.size())
      return Error{Code::kCorrupt, fmt::format("a tensor message that ends in its {}: {} bytes, wanted {}",
                                               field, bytes_.size(), n)};
    const std::span<const std::byte> own = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return own;
  }

  std::span<const std::byte> bytes_;
};

Result<TensorHeader> read_header(HeaderReader& reader) {
  TensorHeader header;
  const auto type = TRY(reader.number<uint8_t>("type"));
  if (type < 1 || type > std::size(kTypes)) return corrupt("type", type, "1 to 8");
  header.type = static_cast<ElementType>(type);
  const auto n_dimensions = TRY(reader.number<uint8_t>("dimensions"));
  if (n_dimensions > TensorHeader::kMaxDimensions) return corrupt("dimensions", n_dimensions, "at most 8");
  const auto n_name = TRY(reader.number<uint16_t>("length of a name"));
  header.name = TRY(reader.text(n_name, "name"));
  for (size_t i = 0; i < n_dimensions; ++i)
    header.shape.push_back(static_cast<int64_t>(TRY(reader.number<uint64_t>("shape"))));
  const auto said = TRY(reader.number<uint64_t>("bytes of a tensor"));
  const uint64_t wanted = TRY(tensor_bytes(header));
  if (said != wanted) return corrupt("bytes of a tensor", said, fmt::format("{:#x} by its shape", wanted));
  header.content = TRY(reader.number<uint64_t>("checksum of a tensor"));
  return header;
}

}  // namespace

size_t element_bytes(ElementType type) {
  return kTypes[static_cast<size_t>(type) - 1].second;
}
std::string_view name_of(ElementType type) {
  return kTypes[static_cast<size_t>(type) - 1].first;
}

Result<uint64_t> tensor_bytes(const TensorHeader& header) {
  uint64_t n = element_bytes(header.type);
  bool is_empty = false;
  for (const int64_t size : header.shape) {
    if (size < 0) return corrupt("shape", static_cast<uint64_t>(size), "sizes from 0");
    is_empty = is_empty || size == 0;
    const auto positive = static_cast<uint64_t>(size == 0 ? 1 : size);
    if (positive > kMostBytes / n) return corrupt("shape", positive, "at most 2^62 bytes");
    n *= positive;
  }
  return is_empty ? 0 : n;
}

Result<Bytes> encode_tensor_headers(std::span<const TensorHeader> headers) {
  std::vector<std::byte> out;
  put_le(out, kMagic);
  put_le(out, kVersion);
  put_le(out, uint32_t{0});  // the length, once it is known
  put_le(out, static_cast<uint32_t>(headers.size()));
  for (const TensorHeader& header : headers) {
    const Result<uint64_t> n_bytes = tensor_bytes(header);
    if (!n_bytes || header.name.size() > TensorHeader::kMaxNameBytes ||
        header.shape.size() > TensorHeader::kMaxDimensions)
      return Error{Code::kInvalidArgument,
                   fmt::format("tensor {:.64} with {} dimensions and a name of {} bytes: at most {} and {}",
                               header.name, header.shape.size(), header.name.size(),
                               TensorHeader::kMaxDimensions, TensorHeader::kMaxNameBytes)};
    put_le(out, static_cast<uint8_t>(header.type));
    put_le(out, static_cast<uint8_t>(header.shape.size()));
    put_le(out, static_cast<uint16_t>(header.name.size()));
    const std::span<const std::byte> name = std::as_bytes(std::span(header.name));
    out.insert(out.end(), name.begin(), name.end());
    for (const int64_t size : header.shape) put_le(out, static_cast<uint64_t>(size));
    put_le(out, *n_bytes);
    put_le(out, header.content);
  }
  std::vector<std::byte> length;
  put_le(length, static_cast<uint32_t>(out.size() + kChecksumBytes));
  std::copy(length.begin(), length.end(), out.begin() + 8);
  put_le(out, checksum(out));
  const auto* const first = reinterpret_cast<const uint8_t*>(out.data());
  return Bytes(first, first + out.size());
}

Result<std::pair<std::vector<TensorHeader>, size_t>> decode_tensor_headers(std::span<const uint8_t> bytes) {
  const std::span<const std::byte> all = std::as_bytes(bytes);
  HeaderReader fixed(all);
  const auto magic = TRY(fixed.number<uint32_t>("beginning"));
  if (magic != kMagic) return corrupt("beginning", magic, fmt::format("{:#x}", kMagic));
  const auto version = TRY(fixed.number<uint32_t>("version"));
  if (version != kVersion) return corrupt("version", version, fmt::format("{:#x}", kVersion));
  const auto length = TRY(fixed.number<uint32_t>("length"));
  if (length < kFixedBytes + kChecksumBytes || length > bytes.size())
    return corrupt("length", length,
                   fmt::format("{:#x} to {:#x}", kFixedBytes + kChecksumBytes, bytes.size()));
  const std::span<const std::byte> summed = all.first(length - kChecksumBytes);
  const uint64_t sum = get_le<uint64_t>(all, summed.size()), wanted = checksum(summed);
  if (sum != wanted) return corrupt("checksum", sum, fmt::format("{:#x}", wanted));

  HeaderReader reader(summed.subspan(kFixedBytes - 4));
  const auto n_tensors = TRY(reader.number<uint32_t>("number of tensors"));
  if (n_tensors > reader.left() / kTensorBytes)
    return corrupt("number of tensors", n_tensors, "what its length has room for");
  std::vector<TensorHeader> headers;
  for (uint32_t i = 0; i < n_tensors; ++i) headers.push_back(TRY(read_header(reader)));
  if (reader.left() != 0) return corrupt("rest", reader.left(), "no bytes behind the last tensor");
  return std::pair(std::move(headers), size_t{length});
}

}  // namespace forebay::train
