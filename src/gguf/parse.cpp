/// Reads a file's header, metadata and tensor table; believes no count, length or offset before checking it.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "gguf/cursor.h"
#include "gguf/gguf.h"
#include "gguf/placement.h"
#include "gguf/text.h"

namespace forebay {
namespace {

using namespace gguf;

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxNameBytes = 65535;
// The least that one record takes: a one-byte key with a one-byte value, a one-dimensional tensor.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
// Counts are bounded by the file's size, but a large file bounds them badly: beyond this, vectors grow as
// records turn out to exist.
constexpr uint64_t kMaxReserved = 1 << 18;

/// What an id stood for before it was withdrawn; empty for ids that never were.
std::string_view retired_type(uint32_t id) {
  switch (id) {
    case 4:
      return "Q4_2";
    case 5:
      return "Q4_3";
    case 31:
      return "Q4_0_4_4";
    case 32:
      return "Q4_0_4_8";
    case 33:
      return "Q4_0_8_8";
    case 36:
      return "IQ4_NL_4_4";
    case 37:
      return "IQ4_NL_4_8";
    case 38:
      return "IQ4_NL_8_8";
    default:
      return {};
  }
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, uint64_t file_bytes) : cursor_(bytes), file_bytes_(file_bytes) {}

  Result<GgufHeaders> parse() {
    TRY(read_preamble());
    for (uint64_t i = 0; i < n_keys_; ++i) TRY(read_key(i));
    alignment_ = TRY(out_.metadata.get_uint_or("general.alignment", kDefaultAlignment));
    if (!is_alignment(alignment_))
      return Error{Code::kCorrupt,
                   fmt::format("key 'general.alignment': {}, wanted a power of two from {} to {}", alignment_,
                               kMinAlignment, kMaxAlignment)};
    out_.tensors.reserve(std::min(n_tensors_, kMaxReserved));
    for (uint64_t i = 0; i < n_tensors_; ++i) TRY(read_tensor(i));
    TRY(place_tensors());
    return std::move(out_);
  }

 private:
  Result<void> read_preamble() {
    const auto magic = TRY(cursor_.take<uint32_t>("magic"));
    if (magic != kMagic)
      return Error{
          Code::kCorrupt,
          fmt::format("not a GGUF file: it starts with {:02x} {:02x} {:02x} {:02x}, wanted 47 47 55 46",
                      magic & 0xff, magic >> 8 & 0xff, magic >> 16 & 0xff, magic >> 24)};
    out_.version = TRY(cursor_.take<uint32_t>("version"));
    if (out_.version != 0 && (out_.version & 0xffff) == 0)
      return Error{Code::kUnsupported, fmt::format("a big-endian GGUF file (version reads {:#010x}); only "
                                                   "little-endian ones are read",
                                                   out_.version)};
    if (out_.version != 2 && out_.version != 3)
      return Error{Code::kUnsupported, fmt::format("GGUF version {}, wanted 2 or 3", out_.version)};
    n_tensors_ = TRY(read_count("tensors", kMinTensorBytes));
    n_keys_ = TRY(read_count("keys", kMinKeyBytes));
    return {};
  }

  Result<uint64_t> read_count(std::string_view what, uint64_t min_record_bytes) {
    const uint64_t at = cursor_.offset();
    const auto count = TRY(cursor_.take<uint64_t>(what));
    const uint64_t limit = cursor_.remaining() / min_record_bytes;
    if (count > limit)
      return Error{Code::kCorrupt,
                   fmt::format("{} at offset {}: count {}, but the file ends at {}, enough for {} at most",
                               what, at, count, cursor_.offset() + cursor_.remaining(), limit)};
    return count;
  }

  Result<std::string> read_name(std::string_view what) {
    const uint64_t at = cursor_.offset();
    const auto name = TRY(cursor_.take_string(fmt::format("name of {}", what)));
    if (name.empty() || name.size() > kMaxNameBytes)
      return Error{Code::kCorrupt, fmt::format("name of {} at offset {}: {} bytes, wanted 1 to {}", what, at,
                                               name.size(), kMaxNameBytes)};
    return std::string(name);
  }

  Result<void> read_key(uint64_t i) {
    const uint64_t at = cursor_.offset();
    auto key = TRY(read_name(fmt::format("key {} of {}", i + 1, n_keys_)));
    const std::string what = "key " + quote(key);
    if (out_.metadata.has(key))
      return Error{Code::kCorrupt, fmt::format("{} at offset {}: appears twice", what, at)};
    const auto type = static_cast<GgufType>(TRY(cursor_.take<uint32_t>(what)));
    auto value = TRY(read_value(what, type));
    out_.metadata.set(std::move(key), std::move(value));
    return {};
  }

  Result<GgufValue> read_value(std::string_view what, GgufType type) {
    GgufValue value{.type = type, .element = GgufType::kU32, .data = {}};
    switch (type) {
      case GgufType::kU8:
        value.data = uint64_t{TRY(cursor_.take<uint8_t>(what))};
        break;
      case GgufType::kU16:
        value.data = uint64_t{TRY(cursor_.take<uint16_t>(what))};
        break;
      case GgufType::kU32:
        value.data = uint64_t{TRY(cursor_.take<uint32_t>(what))};
        break;
      case GgufType::kU64:
        value.data = TRY(cursor_.take<uint64_t>(what));
        break;
      case GgufType::kI8:
        value.data = int64_t{TRY(cursor_.take<int8_t>(what))};
        break;
      case GgufType::kI16:
        value.data = int64_t{TRY(cursor_.take<int16_t>(what))};
        break;
      case GgufType::kI32:
        value.data = int64_t{TRY(cursor_.take<int32_t>(what))};
        break;
      case GgufType::kI64:
        value.data = TRY(cursor_.take<int64_t>(what));
        break;
      case GgufType::kF32:
        value.data = double{TRY(cursor_.take<float>(what))};
        break;
      case GgufType::kF64:
        value.data = TRY(cursor_.take<double>(what));
        break;
      case GgufType::kBool:
        value.data = TRY(read_bool(what));
        break;
      case GgufType::kString:
        value.data = std::string(TRY(cursor_.take_string(what)));
        break;
      case GgufType::kArray:
        value.element = static_cast<GgufType>(TRY(cursor_.take<uint32_t>(what)));
        value.data = TRY(read_array(what, value.element));
        break;
      default:
        return unknown_type(what, type);
    }
    return value;
  }

  Error unknown_type(std::string_view what, GgufType type) const {
    return {Code::kCorrupt, fmt::format("{} at offset {}: value type {}, wanted 0 to 12", what,
                                        cursor_.offset() - 4, static_cast<uint32_t>(type))};
  }

  Result<bool> read_bool(std::string_view what) {
    const auto byte = TRY(cursor_.take<uint8_t>(what));
    if (byte > 1)
      return Error{Code::kCorrupt,
                   fmt::format("{} at offset {}: bool {}, wanted 0 or 1", what, cursor_.offset() - 1, byte)};
    return byte == 1;
  }

  Result<GgufArray> read_array(std::string_view what, GgufType element) {
    switch (element) {
      case GgufType::kU8:
        return read_numbers<uint8_t, uint64_t>(what);
      case GgufType::kU16:
        return read_numbers<uint16_t, uint64_t>(what);
      case GgufType::kU32:
        return read_numbers<uint32_t, uint64_t>(what);
      case GgufType::kU64:
        return read_numbers<uint64_t, uint64_t>(what);
      case GgufType::kI8:
        return read_numbers<int8_t, int64_t>(what);
      case GgufType::kI16:
        return read_numbers<int16_t, int64_t>(what);
      case GgufType::kI32:
        return read_numbers<int32_t, int64_t>(what);
      case GgufType::kI64:
        return read_numbers<int64_t, int64_t>(what);
      case GgufType::kF32:
        return read_numbers<float, double>(what);
      case GgufType::kF64:
        return read_numbers<double, double>(what);
      case GgufType::kBool:
        return read_bools(what);
      case GgufType::kString:
        return read_strings(what);
      case GgufType::kArray:
        return Error{Code::kUnsupported,
                     fmt::format("{} at offset {}: an array of arrays", what, cursor_.offset() - 4)};
      default:
        return unknown_type(what, element);
    }
  }

  template <typename Stored, typename Wide>
  Result<GgufArray> read_numbers(std::string_view what) {
    const uint64_t count = TRY(read_count(what, sizeof(Stored)));
    const std::string_view bytes = TRY(cursor_.take_bytes(what, count * sizeof(Stored)));
    std::vector<Wide> values(count);
    for (uint64_t i = 0; i < count; ++i) {
      Stored value;
      std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
      values[i] = value;
    }
    return GgufArray(std::move(values));
  }

  Result<GgufArray> read_bools(std::string_view what) {
    const uint64_t count = TRY(read_count(what, 1));
    std::vector<bool> values(count);
    for (uint64_t i = 0; i < count; ++i) values[i] = TRY(read_bool(what));
    return GgufArray(std::move(values));
  }

  Result<GgufArray> read_strings(std::string_view what) {
    const uint64_t count = TRY(read_count(what, 8));
    std::vector<std::string> values;
    values.reserve(std::min(count, kMaxReserved));
    for (uint64_t i = 0; i < count; ++i) {
      Result<std::string_view> value = cursor_.take_string(what);
      if (!value) return std::move(value).error().in(fmt::format("element {} of {}", i, count));
      values.emplace_back(*value);
    }
    return GgufArray(std::move(values));
  }

  Result<void> read_tensor(uint64_t i) {
    const uint64_t at = cursor_.offset();
    TensorInfo tensor;
    tensor.name = TRY(read_name(fmt::format("tensor {} of {}", i + 1, n_tensors_)));
    const std::string what = "tensor " + quote(tensor.name);
    if (!names_.insert(tensor.name).second)
      return Error{Code::kCorrupt, fmt::format("{} at offset {}: appears twice", what, at)};

    const auto n_dims = TRY(cursor_.take<uint32_t>(what));
    if (n_dims < 1 || n_dims > tensor.ne.size())
      return Error{Code::kCorrupt, fmt::format("{} at offset {}: {} dimensions, wanted 1 to {}", what,
                                               cursor_.offset() - 4, n_dims, tensor.ne.size())};
    tensor.n_dims = static_cast<int>(n_dims);
    for (uint32_t dim = 0; dim < n_dims; ++dim) tensor.ne[dim] = TRY(cursor_.take<uint64_t>(what));

    tensor.type = TRY(read_tensor_type(what));
    Result<uint64_t> n_bytes = tensor_bytes(tensor.type, {tensor.ne.data(), n_dims});
    if (!n_bytes) return std::move(n_bytes).error().in(fmt::format("{} at offset {}", what, at));
    tensor.bytes = *n_bytes;

    // Relative to the data section, whose start is known when the table has been read.
    tensor.offset = TRY(cursor_.take<uint64_t>(what));
    if (tensor.offset % alignment_ != 0)
      return Error{Code::kCorrupt, fmt::format("{}: data offset {} is not a multiple of the alignment {}",
                                               what, tensor.offset, alignment_)};
    out_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<DType> read_tensor_type(std::string_view what) {
    const auto id = TRY(cursor_.take<uint32_t>(what));
    if (const std::optional<DType> type = dtype_from_id(id)) return *type;
    if (const std::string_view name = retired_type(id); !name.empty())
      return Error{Code::kUnsupported,
                   fmt::format("{}: type id {} was {}, which is withdrawn: the model has to be "
                               "quantized again",
                               what, id, name)};
    return Error{Code::kUnsupported,
                 fmt::format("{}: unknown type id {} (newer than this program, or private to "
                             "another one)",
                             what, id)};
  }

  Result<void> place_tensors() {
    const std::optional<uint64_t> data_offset = align_up(cursor_.offset(), alignment_);
    if (!data_offset)
      return Error{Code::kCorrupt,
                   fmt::format("data section behind offset {}: beyond 64 bits", cursor_.offset())};
    out_.data_offset = *data_offset;
    for (TensorInfo& tensor : out_.tensors) {
      const uint64_t relative = tensor.offset;
      uint64_t end;
      if (__builtin_add_overflow(out_.data_offset, relative, &tensor.offset) ||
          __builtin_add_overflow(tensor.offset, tensor.bytes, &end))
        return Error{
            Code::kCorrupt,
            fmt::format("tensor {}: data offset {} + {} and size {} are beyond 64 bits, the file ends at {}",
                        quote(tensor.name), relative, out_.data_offset, tensor.bytes, file_bytes_)};
    }
    return check_placement(out_.tensors, alignment_, file_bytes_);
  }

  Cursor cursor_;
  const uint64_t file_bytes_;
  uint64_t n_tensors_ = 0;
  uint64_t n_keys_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string> names_;
  GgufHeaders out_;
};

}  // namespace

Result<GgufHeaders> parse_gguf_headers(std::span<const std::byte> bytes, uint64_t file_bytes) {
  try {
    return Parser(bytes, file_bytes).parse();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return Error{Code::kOutOfMemory,
               fmt::format("headers of a file of {} bytes: no memory to hold them", file_bytes)};
}

}  // namespace forebay
