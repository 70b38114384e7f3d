#include "trace/format.h"

#include <algorithm>

#include <fmt/format.h>

namespace forebay::trace_format {
namespace {

constexpr std::string_view kMagic = "FBYTRACE";
constexpr size_t kFixedBytes = 32;  // up to the list of blocks
constexpr uint32_t kMaxBlocks = 1 << 16;
constexpr int64_t kMaxAllExperts = 1 << 20;
constexpr uint64_t kMaxExpertBytes = 1ull << 40;
constexpr uint32_t kMaxNameBytes = 1 << 16;

Error corrupt(std::string message) {
  return {Code::kCorrupt, std::move(message)};
}

}  // namespace

uint64_t frame_checksum(const FrameHeader& header, std::span<const std::byte> payload) {
  std::vector<std::byte> fields;
  put_le(fields, header.kind);
  put_le(fields, header.n_rows);
  put_le(fields, header.payload_bytes);
  return checksum(payload, checksum(fields));
}

std::vector<std::byte> encode_frame_header(uint32_t kind, uint32_t n_rows,
                                           std::span<const std::byte> payload) {
  const FrameHeader header{kind, n_rows, static_cast<uint32_t>(payload.size()), 0};
  std::vector<std::byte> bytes;
  put_le(bytes, header.kind);
  put_le(bytes, header.n_rows);
  put_le(bytes, header.payload_bytes);
  put_le(bytes, frame_checksum(header, payload));
  return bytes;
}

FrameHeader decode_frame_header(std::span<const std::byte> bytes) {
  return {get_le<uint32_t>(bytes, 0), get_le<uint32_t>(bytes, 4), get_le<uint32_t>(bytes, 8),
          get_le<uint64_t>(bytes, 12)};
}

Result<void> check(const TraceHeader& header) {
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (header.expert_bytes.empty() || header.expert_bytes.size() > kMaxBlocks)
    return refuse(fmt::format("trace: {} blocks, expected 1 to {}", header.expert_bytes.size(), kMaxBlocks));
  if (header.n_experts < 1 || header.n_experts > kMaxRoutedExperts)
    return refuse(
        fmt::format("trace: {} experts in a block, expected 1 to {}", header.n_experts, kMaxRoutedExperts));
  if (int64_t{header.n_blocks()} * header.n_experts > kMaxAllExperts)
    return refuse(fmt::format("trace: {} blocks of {} experts, expected at most {} in all", header.n_blocks(),
                              header.n_experts, kMaxAllExperts));
  if (header.n_used < 1 || header.n_used > header.n_candidates())
    return refuse(
        fmt::format("trace: {} experts per token, expected 1 to {}", header.n_used, header.n_candidates()));
  if (header.slot_bytes.size() != header.expert_bytes.size())
    return refuse(fmt::format("trace: {} blocks' slots for {} blocks", header.slot_bytes.size(),
                              header.expert_bytes.size()));
  for (int b = 0; b < header.n_blocks(); ++b) {
    const uint64_t expert = header.expert_bytes[b], slot = header.slot_bytes[b];
    if (slot < expert || slot > kMaxExpertBytes || (slot == 0) != (expert == 0))
      return refuse(fmt::format(
          "trace: block {}: slots of {} bytes for experts of {}, expected at least as many and at "
          "most {}",
          b, slot, expert, kMaxExpertBytes));
  }
  if (*std::max_element(header.slot_bytes.begin(), header.slot_bytes.end()) == 0)
    return refuse("trace: no block has experts");
  if (header.model.size() > kMaxNameBytes)
    return refuse(fmt::format("trace: a model name of {} bytes, expected at most {}", header.model.size(),
                              kMaxNameBytes));
  return {};
}

std::vector<std::byte> encode(const TraceHeader& header) {
  std::vector<std::byte> bytes;
  const auto text = [&](std::string_view t) {
    for (const char c : t) bytes.push_back(static_cast<std::byte>(c));
  };
  text(kMagic);
  put_le(bytes, kVersion);
  put_le(bytes,
         static_cast<uint32_t>(kFixedBytes + 16 * header.expert_bytes.size() + header.model.size() + 8));
  put_le(bytes, static_cast<uint32_t>(header.n_blocks()));
  put_le(bytes, static_cast<uint32_t>(header.n_experts));
  put_le(bytes, static_cast<uint32_t>(header.n_used));
  put_le(bytes, static_cast<uint32_t>(header.model.size()));
  for (const uint64_t n : header.expert_bytes) put_le(bytes, n);
  for (const uint64_t n : header.slot_bytes) put_le(bytes, n);
  text(header.model);
  put_le(bytes, checksum(bytes));
  return bytes;
}

Result<DecodedHeader> decode_header(std::span<const std::byte> file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 8));
  if (start != kMagic) return corrupt("not a trace: it does not begin with FBYTRACE");
  if (file.size() < kFixedBytes)
    return corrupt(fmt::format("{} bytes, a header has at least {}", file.size(), kFixedBytes));
  if (const auto version = get_le<uint32_t>(file, 8); version != kVersion)
    return Error{Code::kUnsupported, fmt::format("version {}, this program reads {}", version, kVersion)};
  const auto n_bytes = get_le<uint32_t>(file, 12);
  const uint64_t n_blocks = get_le<uint32_t>(file, 16);
  const uint64_t name_bytes = get_le<uint32_t>(file, 28);
  const uint64_t wanted = kFixedBytes + 16 * n_blocks + name_bytes + 8;
  if (n_bytes != wanted || n_bytes > file.size())
    return corrupt(fmt::format("a header of {} bytes in a file of {}, its {} blocks and name need {}",
                               n_bytes, file.size(), n_blocks, wanted));
  const uint64_t sum = checksum(file.first(n_bytes - 8));
  if (const auto stored = get_le<uint64_t>(file, n_bytes - 8); stored != sum)
    return corrupt(fmt::format("header checksum {:016x}, its bytes give {:016x}", stored, sum));

  DecodedHeader decoded{{}, n_bytes};
  TraceHeader& header = decoded.header;
  // Out of range before it is made signed.
  const auto number = [&](size_t at) {
    return static_cast<int32_t>(std::min<uint32_t>(get_le<uint32_t>(file, at), INT32_MAX));
  };
  header.n_experts = number(20);
  header.n_used = number(24);
  for (uint64_t b = 0; b < n_blocks; ++b)
    header.expert_bytes.push_back(get_le<uint64_t>(file, kFixedBytes + 8 * b));
  for (uint64_t b = 0; b < n_blocks; ++b)
    header.slot_bytes.push_back(get_le<uint64_t>(file, kFixedBytes + 8 * (n_blocks + b)));
  header.model.assign(reinterpret_cast<const char*>(file.data()) + kFixedBytes + 16 * n_blocks, name_bytes);
  if (Result<void> checked = check(header); !checked) return corrupt(std::move(checked.error().message));
  return decoded;
}

}  // namespace forebay::trace_format
