/// Any bytes where tensors are announced: headers that encode to the same bytes, or an error, never more
/// memory than came.
#include <algorithm>

#include "core/bytes.h"
#include "fuzz.h"
#include "train/comm/tensor_header.h"

namespace {

using namespace forebay;
using namespace forebay::train;

void check(std::span<const uint8_t> bytes) {
  const auto decoded = decode_tensor_headers(bytes);
  if (!decoded) {
    FUZZ_ASSERT(decoded.error().code == Code::kCorrupt && !decoded.error().message.empty());
    return;
  }
  const auto& [headers, used] = *decoded;
  FUZZ_ASSERT(used <= bytes.size());
  const Bytes again = encode_tensor_headers(headers).value();
  FUZZ_ASSERT(again.size() == used && std::equal(again.begin(), again.end(), bytes.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({data, size});
  // Mutations seldom hit a checksum: the same with length and checksum put right.
  if (size < 24) return 0;
  Bytes bytes(data, data + size);
  for (size_t i = 0; i < 4; ++i) bytes[8 + i] = static_cast<uint8_t>(size >> (8 * i));
  const uint64_t sum = checksum(std::as_bytes(std::span(bytes).first(size - 8)));
  for (size_t i = 0; i < 8; ++i) bytes[size - 8 + i] = static_cast<uint8_t>(sum >> (8 * i));
  check(bytes);
  return 0;
}

FuzzSeeds fuzz_seeds() {
  FuzzSeeds seeds;
  const std::vector<TensorHeader> some = {{"model.embed_tokens.weight", ElementType::kF32, {1000, 64}},
                                          {"", ElementType::kBool, {}},
                                          {"x", ElementType::kI64, {0, 3}}};
  for (size_t n = 0; n <= some.size(); ++n) {
    const Bytes bytes = encode_tensor_headers(std::span(some).first(n)).value();
    seeds.inputs.emplace_back(bytes.begin(), bytes.end());
  }
  seeds.tokens = {"FBTN", std::string("\0\0\0\0\0\0\0\0", 8),
                  std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), std::string("\1\0\0\0", 4)};
  return seeds;
}
