#include "train/anchor/delta.h"

#include <bit>
#include <limits>

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/hash.h"

namespace forebay::train {
namespace {

constexpr std::string_view kMagic = "FBYDELTA";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostElements = uint64_t{1} << 40;
constexpr size_t kFixedBytes = 8 + 4 + 4 + 8 + 8 + 32 + 32 + 4;  // up to the tensors
constexpr uint64_t kMostPairs = std::numeric_limits<uint32_t>::max();

uint64_t payload_bytes(DeltaEncoding encoding, uint64_t n_elements, uint64_t n_changed) {
  return encoding == DeltaEncoding::kPairs ? 6 * n_changed : (n_elements + 7) / 8 + 2 * n_changed;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

DeltaEncoding chosen(DeltaChoice choice, uint64_t n_elements, uint64_t n_changed) {
  if (choice == DeltaChoice::kBitmap || n_elements > kMostPairs) return DeltaEncoding::kBitmap;
  if (choice == DeltaChoice::kPairs) return DeltaEncoding::kPairs;
  return payload_bytes(DeltaEncoding::kPairs, n_elements, n_changed) <
                 payload_bytes(DeltaEncoding::kBitmap, n_elements, n_changed)
             ? DeltaEncoding::kPairs
             : DeltaEncoding::kBitmap;
}

std::vector<uint64_t> changes(const Bf16Tensor& base, const Bf16Tensor& target) {
  std::vector<uint64_t> at;
  for (uint64_t i = 0; i < base.bits.size(); ++i)
    if (base.bits[i] != target.bits[i]) at.push_back(i);
  return at;
}

/// Reads the header; every length is checked before it is used.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<std::span<const std::byte>> take(size_t n, std::string_view what) {
    if (n > bytes_.size() - at_) return wrong(fmt::format("ends inside {}", what));
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  template <typename T>
  Result<T> number(std::string_view what) {
    return get_le<T>(TRY(take(sizeof(T), what)), 0);
  }
  size_t at() const { return at_; }
  Error wrong(std::string_view what) const {
    return {Code::kCorrupt, fmt::format("{}: {} (byte {})", name_, what, at_)};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  size_t at_ = 0;
};

Result<DeltaTensor> read_tensor(HeaderReader& header) {
  DeltaTensor tensor;
  const auto n_name = TRY(header.number<uint16_t>("a tensor's name"));
  const std::span<const std::byte> name = TRY(header.take(n_name, "a tensor's name"));
  tensor.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  for (const char c : tensor.name)
    if (static_cast<unsigned char>(c) < 0x20) return header.wrong("a tensor's name is no text");
  const auto n_dims = TRY(header.number<uint8_t>("a shape"));
  if (n_dims > 8) return header.wrong(fmt::format("{} dimensions, at most 8", n_dims));
  tensor.n_elements = 1;
  for (int i = 0; i < n_dims; ++i) {
    const auto dim = TRY(header.number<uint64_t>("a shape"));
    if (dim > kMostElements || (dim != 0 && tensor.n_elements > kMostElements / dim))
      return header.wrong("a tensor of more than 2^40 elements");
    tensor.n_elements *= dim;
    tensor.shape.push_back(dim);
  }
  const auto encoding = TRY(header.number<uint8_t>("an encoding"));
  if (encoding > 1) return header.wrong(fmt::format("encoding {}, wanted 0 or 1", encoding));
  tensor.encoding = static_cast<DeltaEncoding>(encoding);
  tensor.n_changed = TRY(header.number<uint64_t>("a count"));
  if (tensor.n_changed > tensor.n_elements)
    return header.wrong(fmt::format("{} changes in {} elements", tensor.n_changed, tensor.n_elements));
  if (tensor.encoding == DeltaEncoding::kPairs && tensor.n_elements > kMostPairs)
    return header.wrong("indices of 32 bits in a tensor of more than 2^32 - 1 elements");
  tensor.bytes = payload_bytes(tensor.encoding, tensor.n_elements, tensor.n_changed);
  return tensor;
}

/// Bits and indices that name elements which exist, as many as the header says.
bool payload_is_sound(const Delta& delta, const DeltaTensor& tensor) {
  const auto* payload = reinterpret_cast<const uint8_t*>(delta.file.data() + tensor.offset);
  if (tensor.encoding == DeltaEncoding::kBitmap) {
    const uint64_t n_bytes = (tensor.n_elements + 7) / 8;
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_bytes; ++i) n += static_cast<uint64_t>(std::popcount(payload[i]));
    const bool clean_end = tensor.n_elements % 8 == 0 || payload[n_bytes - 1] >> (tensor.n_elements % 8) == 0;
    return n == tensor.n_changed && clean_end;
  }
  uint64_t next = 0;
  bool sound = true;
  for_each_change(delta, tensor, [&](uint64_t element, uint16_t) {
    sound = sound && element >= next && element < tensor.n_elements;
    next = element + 1;
  });
  return sound;
}

}  // namespace

Sha256 hash_of(const Bf16Tensors& tensors) {
  Sha256Sum sum;
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : tensors) {
    bytes.clear();
    put_le(bytes, static_cast<uint64_t>(name.size()));
    put(bytes, as_bytes(name));
    put_le(bytes, static_cast<uint64_t>(tensor.shape.size()));
    for (const uint64_t dim : tensor.shape) put_le(bytes, dim);
    for (const uint16_t bits : tensor.bits) put_le(bytes, bits);
    sum.add(bytes);
  }
  return sum.finish();
}

uint64_t Delta::n_elements() const {
  uint64_t n = 0;
  for (const DeltaTensor& tensor : tensors) n += tensor.n_elements;
  return n;
}
uint64_t Delta::n_changed() const {
  uint64_t n = 0;
  for (const DeltaTensor& tensor : tensors) n += tensor.n_changed;
  return n;
}

Result<std::vector<std::byte>> make_delta(const Bf16Tensors& base, const Bf16Tensors& target,
                                          uint64_t base_step, uint64_t step, DeltaChoice choice) {
  if (step <= base_step)
    return Error{Code::kInvalidArgument,
                 fmt::format("delta: from step {} to step {}, which is not later", base_step, step)};
  if (base.size() != target.size())
    return Error{Code::kInvalidArgument, fmt::format("delta: {} tensors in the base, {} in the checkpoint",
                                                     base.size(), target.size())};
  std::vector<std::byte> out;
  put(out, as_bytes(kMagic));
  put_le(out, kVersion);
  put_le(out, uint32_t{0});  // the header's length, known below
  put_le(out, base_step);
  put_le(out, step);
  const Sha256 base_hash = hash_of(base), target_hash = hash_of(target);
  put(out, std::as_bytes(std::span(base_hash)));
  put(out, std::as_bytes(std::span(target_hash)));
  put_le(out, static_cast<uint32_t>(base.size()));
  std::vector<std::byte> payload;
  for (const auto& [name, before] : base) {
    const auto found = target.find(name);
    if (found == target.end() || found->second.shape != before.shape ||
        found->second.bits.size() != before.bits.size())
      return Error{Code::kInvalidArgument,
                   fmt::format("delta: the checkpoint has no {} of the base's shape", name)};
    const std::vector<uint64_t> at = changes(before, found->second);
    const DeltaEncoding encoding = chosen(choice, before.bits.size(), at.size());
    put_le(out, static_cast<uint16_t>(name.size()));
    put(out, as_bytes(name));
    put_le(out, static_cast<uint8_t>(before.shape.size()));
    for (const uint64_t dim : before.shape) put_le(out, dim);
    put_le(out, static_cast<uint8_t>(encoding));
    put_le(out, static_cast<uint64_t>(at.size()));
    if (encoding == DeltaEncoding::kBitmap) {
      std::vector<uint8_t> bitmap((before.bits.size() + 7) / 8);
      for (const uint64_t i : at) bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] | 1 << (i % 8));
      put(payload, std::as_bytes(std::span(bitmap)));
    } else {
      for (const uint64_t i : at) put_le(payload, static_cast<uint32_t>(i));
    }
    for (const uint64_t i : at) put_le(payload, found->second.bits[i]);
  }
  const auto header_bytes = static_cast<uint32_t>(out.size() + 8);
  for (int i = 0; i < 4; ++i) out[12 + i] = static_cast<std::byte>(header_bytes >> (8 * i));
  put_le(out, checksum(out));
  const uint64_t sum = fast_checksum(payload);
  put(out, payload);
  put_le(out, sum);
  return out;
}

Result<Delta> parse_delta(std::vector<std::byte> file, std::string_view name) {
  HeaderReader header(file, name);
  const std::span<const std::byte> magic = TRY(header.take(8, "the magic"));
  if (!std::equal(magic.begin(), magic.end(), as_bytes(kMagic).begin())) return header.wrong("not a delta");
  const auto version = TRY(header.number<uint32_t>("the version"));
  if (version != kVersion)
    return Error{Code::kUnsupported, fmt::format("{}: version {}, this reads {}", name, version, kVersion)};
  const auto header_bytes = TRY(header.number<uint32_t>("the header's length"));
  if (header_bytes < kFixedBytes + 8 || header_bytes > file.size())
    return header.wrong(fmt::format("a header of {} bytes in {}", header_bytes, file.size()));
  const std::span<const std::byte> all(file);
  if (get_le<uint64_t>(all, header_bytes - 8) != checksum(all.first(header_bytes - 8)))
    return header.wrong("the header's checksum is wrong");
  Delta delta;
  delta.base_step = TRY(header.number<uint64_t>("the steps"));
  delta.step = TRY(header.number<uint64_t>("the steps"));
  if (delta.step <= delta.base_step) return header.wrong("the step is not behind the base's");
  for (Sha256* hash : {&delta.base_hash, &delta.target_hash}) {
    const std::span<const std::byte> bytes = TRY(header.take(hash->size(), "a hash"));
    for (size_t i = 0; i < hash->size(); ++i) (*hash)[i] = static_cast<uint8_t>(bytes[i]);
  }
  const auto n_tensors = TRY(header.number<uint32_t>("the number of tensors"));
  uint64_t at = header_bytes;
  for (uint32_t i = 0; i < n_tensors; ++i) {
    DeltaTensor tensor = TRY(read_tensor(header));
    if (!delta.tensors.empty() && tensor.name <= delta.tensors.back().name)
      return header.wrong(fmt::format("tensor {} is out of order", tensor.name));
    if (tensor.bytes > file.size() - at)
      return header.wrong(fmt::format("the file ends inside {}", tensor.name));
    tensor.offset = at;
    at += tensor.bytes;
    delta.tensors.push_back(std::move(tensor));
  }
  if (header.at() + 8 != header_bytes) return header.wrong("the header has another length than it says");
  if (file.size() - at != 8)
    return header.wrong(fmt::format("{} bytes where 8 are wanted", file.size() - at));
  if (get_le<uint64_t>(all, at) != fast_checksum(all.subspan(header_bytes, at - header_bytes)))
    return header.wrong("the payload's checksum is wrong");
  delta.file = std::move(file);
  for (const DeltaTensor& tensor : delta.tensors)
    if (!payload_is_sound(delta, tensor))
      return Error{Code::kCorrupt,
                   fmt::format("{}: {}: changes that its shape does not have", name, tensor.name)};
  return delta;
}

Result<void> apply_delta(const Delta& delta, uint64_t at_step, Bf16Tensors& tensors) {
  if (at_step != delta.base_step)
    return Error{
        Code::kInvalidArgument,
        fmt::format("delta: goes from step {} to {}, the checkpoint is at step {}: a link is missing",
                    delta.base_step, delta.step, at_step)};
  const Sha256 base = hash_of(tensors);
  if (base != delta.base_hash)
    return Error{Code::kInvalidArgument,
                 fmt::format("delta: was made from another base: its hash is {}, here it is {}",
                             to_hex(delta.base_hash).substr(0, 16), to_hex(base).substr(0, 16))};
  Bf16Tensors target = tensors;
  for (const DeltaTensor& change : delta.tensors) {
    const auto found = target.find(change.name);
    if (found == target.end() || found->second.shape != change.shape ||
        found->second.bits.size() != change.n_elements)
      return Error{Code::kInvalidArgument, fmt::format("delta: no {} of its shape here", change.name)};
    for_each_change(delta, change,
                    [&](uint64_t element, uint16_t bits) { found->second.bits[element] = bits; });
  }
  const Sha256 result = hash_of(target);
  if (result != delta.target_hash)
    return Error{Code::kCorrupt,
                 fmt::format("delta: leads to hash {}, it promises {}", to_hex(result).substr(0, 16),
                             to_hex(delta.target_hash).substr(0, 16))};
  tensors = std::move(target);
  return {};
}

}  // namespace forebay::train
