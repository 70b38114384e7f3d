#include "experts/expert_pack.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/page_range.h"

namespace forebay {
namespace {

constexpr char kMagic[] = "FBYPACK";  // and its 0
constexpr uint32_t kVersion = 1;
constexpr uint64_t kFixedBytes = 8 + 4 + 4;  // magic, version, blocks
constexpr uint64_t kBlockBytes = 7 * 8;

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

uint64_t plane_bytes(const ExpertMatrices& plane) {
  return static_cast<uint64_t>(plane.first.n_rows * plane.first.row_stride_bytes);
}

std::array<const ExpertMatrices*, 3> planes_of(const ExpertPlanes& block) {
  return {&block.gate, &block.up, &block.down};
}

std::span<const std::byte> bytes_of(const ExpertMatrices& plane, int64_t expert) {
  return {plane.first.data + expert * plane.expert_stride, plane_bytes(plane)};
}

PackHeader layout_of(std::span<const ExpertPlanes> blocks) {
  PackHeader header;
  uint64_t offset = whole_pages(kFixedBytes + blocks.size() * kBlockBytes + 8);
  for (const ExpertPlanes& block : blocks) {
    PackHeader::Block& b = header.blocks.emplace_back();
    uint64_t bytes = 0;
    for (size_t p = 0; p < 3; ++p) bytes += b.plane_bytes[p] = plane_bytes(*planes_of(block)[p]);
    b.offset = offset;
    b.stride = whole_pages(bytes);
    b.n_experts = static_cast<uint64_t>(block.gate.n_experts);
    b.fingerprint = fingerprint_of(block);
    offset += b.stride * b.n_experts;
  }
  return header;
}

std::vector<std::byte> encode(const PackHeader& header) {
  std::vector<std::byte> out(sizeof kMagic);
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  put_le(out, kVersion);
  put_le(out, static_cast<uint32_t>(header.blocks.size()));
  for (const PackHeader::Block& b : header.blocks) {
    put_le(out, b.offset);
    put_le(out, b.stride);
    put_le(out, b.n_experts);
    for (uint64_t bytes : b.plane_bytes) put_le(out, bytes);
    put_le(out, b.fingerprint);
  }
  put_le(out, checksum(out));
  out.resize(whole_pages(out.size()));
  return out;
}

}  // namespace

uint64_t fingerprint_of(const ExpertPlanes& block) {
  uint64_t sum = kChecksumSeed;
  for (const ExpertMatrices* plane : planes_of(block)) {
    std::vector<std::byte> facts;
    put_le(facts, static_cast<uint64_t>(plane->first.type));
    for (int64_t fact : {plane->first.n_rows, plane->first.n_cols, plane->n_experts, plane->expert_stride})
      put_le(facts, static_cast<uint64_t>(fact));
    put_le(facts, plane->file_offset);
    sum = checksum(facts, sum);
    for (int64_t e : {int64_t{0}, plane->n_experts - 1}) {
      const auto bytes = bytes_of(*plane, e);
      sum = checksum(bytes.first(std::min<size_t>(bytes.size(), 64)), sum);
    }
  }
  return sum;
}

Result<PackHeader> parse_pack_header(std::span<const std::byte> bytes, uint64_t file_bytes) {
  const auto corrupt = [](std::string what) { return Error{Code::kCorrupt, std::move(what)}; };
  if (bytes.size() < kFixedBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return corrupt("not a pack of experts: it does not begin with FBYPACK");
  if (const auto version = get_le<uint32_t>(bytes, 8); version != kVersion)
    return Error{Code::kUnsupported, fmt::format("pack version {}, expected {}", version, kVersion)};
  const uint64_t n_blocks = get_le<uint32_t>(bytes, 12);
  const uint64_t end = kFixedBytes + n_blocks * kBlockBytes;
  if (n_blocks == 0 || end + 8 > std::min<uint64_t>(bytes.size(), kMaxPackHeader))
    return corrupt(fmt::format("pack header: {} blocks, expected 1 to {} in its {} bytes", n_blocks,
                               (kMaxPackHeader - kFixedBytes - 8) / kBlockBytes, bytes.size()));
  if (get_le<uint64_t>(bytes, end) != checksum(bytes.first(end)))
    return corrupt("pack header: wrong checksum");
  PackHeader header;
  for (uint64_t i = 0; i < n_blocks; ++i) {
    const uint64_t at = kFixedBytes + i * kBlockBytes;
    PackHeader::Block b;
    b.offset = get_le<uint64_t>(bytes, at);
    b.stride = get_le<uint64_t>(bytes, at + 8);
    b.n_experts = get_le<uint64_t>(bytes, at + 16);
    b.fingerprint = get_le<uint64_t>(bytes, at + 48);
    uint64_t sum = 0;
    for (size_t p = 0; p < 3; ++p) {
      b.plane_bytes[p] = get_le<uint64_t>(bytes, at + 24 + 8 * p);
      if (b.plane_bytes[p] > file_bytes)
        return corrupt(fmt::format("pack block {}: a plane of {} bytes in a file of {}", i, b.plane_bytes[p],
                                   file_bytes));
      sum += b.plane_bytes[p];
    }
    if (b.offset % kPageBytes != 0 || b.stride % kPageBytes != 0 || b.stride < sum || b.n_experts == 0 ||
        b.offset > file_bytes || b.stride == 0 || b.n_experts > (file_bytes - b.offset) / b.stride)
      return corrupt(
          fmt::format("pack block {}: {} experts of {} bytes, {} apart from offset {}, in a file of {} bytes",
                      i, b.n_experts, sum, b.stride, b.offset, file_bytes));
    header.blocks.push_back(b);
  }
  return header;
}

Result<void> write_expert_pack(Storage& storage, std::span<const ExpertPlanes> blocks, const Path& path,
                               const std::function<void(uint64_t, uint64_t)>& progress,
                               std::stop_token stop) {
  const PackHeader header = layout_of(blocks);
  const PackHeader::Block& last = header.blocks.back();
  const uint64_t total = last.offset + last.stride * last.n_experts;
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  TRY(file.file().append(encode(header)));
  std::vector<std::byte> blob;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const PackHeader::Block& b = header.blocks[i];
    for (int64_t e = 0; e < static_cast<int64_t>(b.n_experts); ++e) {
      if (stop.stop_requested()) return Error{Code::kCancelled, "pack: interrupted"};
      blob.clear();
      for (const ExpertMatrices* plane : planes_of(blocks[i])) {
        const auto bytes = bytes_of(*plane, e);
        blob.insert(blob.end(), bytes.begin(), bytes.end());
      }
      blob.resize(b.stride);
      TRY(file.file().append(blob));
      if (progress) progress(file.file().position(), total);
    }
  }
  return file.commit();
}

}  // namespace forebay
