#include "session/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/hash.h"

namespace forebay {

std::string model_fingerprint(const GgufFile& file) {
  std::vector<std::byte> facts;
  for (const TensorInfo& t : file.tensors()) {
    const auto name = std::as_bytes(std::span(t.name));
    facts.insert(facts.end(), name.begin(), name.end());
    put_le(facts, static_cast<uint64_t>(t.type));
    for (uint64_t n : t.ne) put_le(facts, n);
    put_le(facts, t.offset);
    const std::span<const std::byte> bytes = file.bytes(t);
    const auto first = bytes.first(std::min<size_t>(bytes.size(), 64));
    facts.insert(facts.end(), first.begin(), first.end());
  }
  return fmt::format("{:016x}", fast_checksum(facts));
}

}  // namespace forebay
