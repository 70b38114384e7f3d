/// Any bytes as the header of a pack: an error, or blocks that lie inside the file.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "experts/expert_pack.h"
#include "fuzz.h"

namespace forebay {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A header of two blocks, with a right checksum.
std::vector<std::byte> valid_header() {
  std::vector<std::byte> bytes;
  for (char c : std::string("FBYPACK") + '\0') bytes.push_back(static_cast<std::byte>(c));
  put_le(bytes, uint32_t{1});
  put_le(bytes, uint32_t{2});
  for (uint64_t block = 0; block < 2; ++block)
    for (uint64_t value : {4096 + block * 8192, uint64_t{4096}, uint64_t{2}, uint64_t{100}, uint64_t{200},
                           uint64_t{300}, uint64_t{7}})
      put_le(bytes, value);
  put_le(bytes, checksum(bytes));
  return bytes;
}

}  // namespace
}  // namespace forebay

FuzzSeeds fuzz_seeds() {
  return {.inputs = {forebay::text_of(forebay::valid_header()), "FBYPACK", ""}, .tokens = {"FBYPACK"}};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay;
  std::vector<std::byte> bytes(size);
  std::transform(data, data + size, bytes.begin(), [](uint8_t b) { return static_cast<std::byte>(b); });
  constexpr uint64_t kFileBytes = 20480;
  for (bool mend : {false, true}) {
    // Past the checksum, which mutations would never get right.
    if (mend && size >= 16 + 56 + 8) {
      const uint64_t n_blocks = get_le<uint32_t>(bytes, 12);
      if (n_blocks == 0 || n_blocks > (size - 24) / 56) break;
      const size_t end = 16 + n_blocks * 56;
      const uint64_t sum = checksum(std::span(bytes).first(end));
      for (size_t i = 0; i < 8; ++i) bytes[end + i] = static_cast<std::byte>(sum >> (8 * i));
    }
    const Result<PackHeader> header = parse_pack_header(bytes, kFileBytes);
    if (!header) {
      FUZZ_ASSERT(!header.error().message.empty());
      continue;
    }
    for (const PackHeader::Block& b : header->blocks) {
      FUZZ_ASSERT(b.n_experts > 0 && b.offset + b.stride * b.n_experts <= kFileBytes);
      FUZZ_ASSERT(b.plane_bytes[0] + b.plane_bytes[1] + b.plane_bytes[2] <= b.stride);
    }
  }
  return 0;
}
