/// Streams a GGUF file: everything before the tensors' bytes is known, and written, first.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "gguf/gguf.h"
#include "gguf/placement.h"
#include "gguf/text.h"

namespace forebay {
namespace {

using namespace gguf;

constexpr uint32_t kVersion = 3;
constexpr uint64_t kMaxKeyBytes = 65535;
// Other readers keep names in 64 bytes with a terminator and refuse longer ones.
constexpr uint64_t kMaxTensorNameBytes = 63;

/// Little-endian fields in the order they are put.
class Encoder {
 public:
  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_string(std::string_view text) {
    put<uint64_t>(text.size());
    bytes_.append(text);
  }
  void pad_to(uint64_t size) { bytes_.resize(size); }
  uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

/// False when `value` is outside Stored.
template <typename Stored, typename T>
bool put_as(Encoder& out, T value) {
  if constexpr (std::is_same_v<Stored, float>) {
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) return false;
  } else if constexpr (std::is_integral_v<Stored>) {
    if (!std::in_range<Stored>(value)) return false;
  }
  out.put(static_cast<Stored>(value));
  return true;
}

/// Puts one scalar as `type`; false when it is of another kind or out of range.
template <typename T>
bool put_item(Encoder& out, GgufType type, const T& item) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (type == GgufType::kString) out.put_string(item);
    return type == GgufType::kString;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (type == GgufType::kBool) out.put<uint8_t>(item);
    return type == GgufType::kBool;
  } else if constexpr (std::is_same_v<T, double>) {
    if (type == GgufType::kF32) return put_as<float>(out, item);
    if (type == GgufType::kF64) return put_as<double>(out, item);
    return false;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (type == GgufType::kU8) return put_as<uint8_t>(out, item);
    if (type == GgufType::kU16) return put_as<uint16_t>(out, item);
    if (type == GgufType::kU32) return put_as<uint32_t>(out, item);
    if (type == GgufType::kU64) return put_as<uint64_t>(out, item);
    return false;
  } else {
    if (type == GgufType::kI8) return put_as<int8_t>(out, item);
    if (type == GgufType::kI16) return put_as<int16_t>(out, item);
    if (type == GgufType::kI32) return put_as<int32_t>(out, item);
    if (type == GgufType::kI64) return put_as<int64_t>(out, item);
    return false;
  }
}

bool put_array(Encoder& out, GgufType element, const GgufArray& array) {
  out.put(static_cast<uint32_t>(element));
  out.put<uint64_t>(n_items(array));
  return std::visit(
      [&](const auto& items) {
        using Item = typename std::decay_t<decltype(items)>::value_type;
        for (const auto& item : items)
          if (!put_item<Item>(out, element, item)) return false;
        return true;
      },
      array);
}

/// The value behind its type; false when it does not fit that.
bool put_value(Encoder& out, const GgufValue& value) {
  out.put(static_cast<uint32_t>(value.type));
  return std::visit(
      [&](const auto& data) {
        using Data = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<Data, GgufArray>)
          return value.type == GgufType::kArray && put_array(out, value.element, data);
        else
          return put_item<Data>(out, value.type, data);
      },
      value.data);
}

}  // namespace

struct GgufWriter::Impl {
  Impl(AtomicFile atomic_file, Path final_path) : file(std::move(atomic_file)), path(std::move(final_path)) {}

  AtomicFile file;
  const Path path;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  // offsets relative to the data section until the headers are written
  std::unordered_set<std::string> names;
  uint64_t alignment = kDefaultAlignment;
  bool headers_written = false;
  size_t current = 0;            // tensor that the next bytes belong to
  uint64_t current_bytes = 0;    // of it, written so far
  std::optional<Error> failure;  // the first one: what follows it would be a file with a hole

  /// Remembers a failure, and puts the path in front of it.
  template <typename T>
  Result<T> keep(Result<T> result) {
    if (result.has_value()) return result;
    Error error = std::move(result).error();
    if (!error.message.starts_with(path.string())) error = std::move(error).in(path.string());
    if (!failure) failure = error;
    return error;
  }

  Result<void> check_usable() const {
    if (failure) return *failure;
    return {};
  }

  Result<void> declare(std::string name, DType type, std::span<const uint64_t> ne) {
    TensorInfo tensor;
    const std::string what = "tensor " + quote(name);
    if (headers_written)
      return Error{Code::kInvalidArgument, fmt::format("{}: declared after the headers were written", what)};
    if (name.empty() || name.size() > kMaxTensorNameBytes)
      return Error{Code::kInvalidArgument, fmt::format("{}: a name of {} bytes, wanted 1 to {}", what,
                                                       name.size(), kMaxTensorNameBytes)};
    if (ne.empty() || ne.size() > tensor.ne.size())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: {} dimensions, wanted 1 to {}", what, ne.size(), tensor.ne.size())};
    Result<uint64_t> n_bytes = tensor_bytes(type, ne);
    if (!n_bytes) return Error{Code::kInvalidArgument, fmt::format("{}: {}", what, n_bytes.error().message)};
    if (!names.insert(name).second)
      return Error{Code::kInvalidArgument, fmt::format("{}: declared twice", what)};
    tensor.name = std::move(name);
    tensor.type = type;
    tensor.n_dims = static_cast<int>(ne.size());
    std::copy(ne.begin(), ne.end(), tensor.ne.begin());
    tensor.bytes = *n_bytes;
    tensors.push_back(std::move(tensor));
    return {};
  }

  /// Gives every tensor its offset in the data section.
  Result<void> place_tensors() {
    uint64_t end = 0;
    for (TensorInfo& tensor : tensors) {
      tensor.offset = end;
      // Neither term exceeds 2^63 - 1, so the sum cannot wrap; what it may not do is pass that limit again.
      const std::optional<uint64_t> padded = align_up(end + tensor.bytes, alignment);
      if (!padded || *padded > INT64_MAX)
        return Error{Code::kInvalidArgument,
                     fmt::format("tensor {}: offset {} and size {} are beyond 2^63 - 1", quote(tensor.name),
                                 tensor.offset, tensor.bytes)};
      end = *padded;
    }
    return {};
  }

  Result<void> write_headers() {
    if (headers_written) return Error{Code::kInvalidArgument, "headers written twice"};
    alignment = TRY(metadata.get_uint_or("general.alignment", kDefaultAlignment));
    if (!is_alignment(alignment))
      return Error{Code::kInvalidArgument,
                   fmt::format("key 'general.alignment': {}, wanted a power of two from {} to {}", alignment,
                               kMinAlignment, kMaxAlignment)};
    TRY(place_tensors());
    Encoder out;
    for (const char c : {'G', 'G', 'U', 'F'}) out.put(c);
    out.put(kVersion);
    out.put<uint64_t>(tensors.size());
    out.put<uint64_t>(metadata.entries().size());
    for (const auto& [key, value] : metadata.entries()) {
      if (key.empty() || key.size() > kMaxKeyBytes)
        return Error{Code::kInvalidArgument,
                     fmt::format("key {}: {} bytes, wanted 1 to {}", quote(key), key.size(), kMaxKeyBytes)};
      out.put_string(key);
      if (!put_value(out, value))
        return Error{Code::kInvalidArgument, fmt::format("key {}: a value that does not fit its type {}",
                                                         quote(key), name_of(value.type))};
    }
    for (const TensorInfo& tensor : tensors) {
      out.put_string(tensor.name);
      out.put(static_cast<uint32_t>(tensor.n_dims));
      for (int dim = 0; dim < tensor.n_dims; ++dim) out.put(tensor.ne[static_cast<size_t>(dim)]);
      out.put(static_cast<uint32_t>(tensor.type));
      out.put(tensor.offset);
    }
    out.pad_to(*align_up(out.size(), alignment));
    TRY(file.file().append(out.bytes()));
    headers_written = true;
    return {};
  }

  Result<void> write_data(std::span<const std::byte> bytes) {
    if (!headers_written) return Error{Code::kInvalidArgument, "tensor data before the headers"};
    if (bytes.empty()) return {};
    if (current == tensors.size())
      return Error{Code::kInvalidArgument,
                   fmt::format("{} bytes after the last of {} tensors", bytes.size(), tensors.size())};
    const TensorInfo& tensor = tensors[current];
    if (bytes.size() > tensor.bytes - current_bytes)
      return Error{Code::kInvalidArgument,
                   fmt::format("tensor {}: {} bytes given, {} of {} left", quote(tensor.name), bytes.size(),
                               tensor.bytes - current_bytes, tensor.bytes)};
    TRY(file.file().append(bytes));
    current_bytes += bytes.size();
    if (current_bytes < tensor.bytes) return {};
    current_bytes = 0;
    ++current;
    return pad();
  }

  /// Zeros up to the next multiple of the alignment; the last tensor gets them too.
  Result<void> pad() {
    static constexpr std::byte kZeros[4096]{};
    uint64_t n_bytes = *align_up(file.file().position(), alignment) - file.file().position();
    while (n_bytes > 0) {
      const uint64_t piece = std::min<uint64_t>(n_bytes, sizeof kZeros);
      TRY(file.file().append({kZeros, piece}));
      n_bytes -= piece;
    }
    return {};
  }

  Result<void> finish() {
    if (!headers_written) return Error{Code::kInvalidArgument, "finished before the headers were written"};
    if (current < tensors.size())
      return Error{Code::kInvalidArgument,
                   fmt::format("tensor {}: {} of {} bytes written, and {} tensors after it missing",
                               quote(tensors[current].name), current_bytes, tensors[current].bytes,
                               tensors.size() - current - 1)};
    TRY(file.commit());
    failure = Error{Code::kInvalidArgument, fmt::format("{}: finished already", path.string())};
    return {};
  }
};

Result<GgufWriter> GgufWriter::create(Storage& storage, const Path& path) {
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  return GgufWriter(std::make_unique<Impl>(std::move(file), path));
}

GgufWriter::GgufWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufWriter::GgufWriter(GgufWriter&&) noexcept = default;
GgufWriter::~GgufWriter() = default;

void GgufWriter::set(std::string key, GgufValue value) {
  if (impl_->headers_written && !impl_->failure)
    impl_->failure =
        Error{Code::kInvalidArgument,
              fmt::format("{}: key {} set after the headers were written", impl_->path.string(), quote(key))};
  impl_->metadata.set(std::move(key), std::move(value));
}

Result<void> GgufWriter::declare(std::string name, DType type, std::span<const uint64_t> ne) {
  TRY(impl_->check_usable());
  return impl_->keep(impl_->declare(std::move(name), type, ne));
}

Result<void> GgufWriter::write_headers() {
  TRY(impl_->check_usable());
  return impl_->keep(impl_->write_headers());
}

Result<void> GgufWriter::write_data(std::span<const std::byte> bytes) {
  TRY(impl_->check_usable());
  return impl_->keep(impl_->write_data(bytes));
}

Result<void> GgufWriter::finish() {
  TRY(impl_->check_usable());
  return impl_->keep(impl_->finish());
}

}  // namespace forebay
