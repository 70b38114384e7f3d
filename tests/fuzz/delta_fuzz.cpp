/// Any bytes as a delta: an error, or changes that all lie inside their tensors. Once as they are, once with
/// checksums made right, so that mutations get past those.
#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/hash.h"
#include "fuzz.h"
#include "train/anchor/delta.h"

namespace forebay {
namespace {

using namespace train;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void overwrite(std::vector<std::byte>& bytes, size_t at, uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

std::vector<std::byte> with_checksums(std::vector<std::byte> bytes) {
  if (bytes.size() < 32) return bytes;
  const std::span<const std::byte> all(bytes);
  const size_t header = get_le<uint32_t>(all, 12);
  if (header < 16 || header + 8 > bytes.size()) return bytes;
  overwrite(bytes, header - 8, checksum(all.first(header - 8)));
  overwrite(bytes, bytes.size() - 8, fast_checksum(all.subspan(header, bytes.size() - 8 - header)));
  return bytes;
}

void try_bytes(std::vector<std::byte> bytes) {
  const Result<Delta> delta = parse_delta(std::move(bytes), "fuzz");
  if (!delta) {
    FUZZ_ASSERT(!delta.error().message.empty());
    FUZZ_ASSERT(std::none_of(delta.error().message.begin(), delta.error().message.end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
    return;
  }
  Bf16Tensors tensors;
  uint64_t n_elements = 0;
  for (const DeltaTensor& tensor : delta->tensors) n_elements += tensor.n_elements;
  for (const DeltaTensor& tensor : delta->tensors) {
    uint64_t n = 0, next = 0;
    for_each_change(*delta, tensor, [&](uint64_t element, uint16_t) {
      FUZZ_ASSERT(element >= next && element < tensor.n_elements);
      next = element + 1;
      ++n;
    });
    FUZZ_ASSERT(n == tensor.n_changed);
    if (n_elements < 4096) tensors[tensor.name] = {tensor.shape, std::vector<uint16_t>(tensor.n_elements, 1)};
  }
  (void)apply_delta(*delta, delta->base_step, tensors);
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_bytes(bytes_of(text));
  try_bytes(with_checksums(bytes_of(text)));
  return 0;
}

FuzzSeeds fuzz_seeds() {
  using namespace forebay;
  Bf16Tensors base;
  base["a"] = {{3, 7}, std::vector<uint16_t>(21, 1)};
  base["b.weight"] = {{200}, std::vector<uint16_t>(200, 2)};
  Bf16Tensors target = base;
  target["a"].bits[5] = 0x8000;
  target["b.weight"].bits[7] = 0x7fc1;
  FuzzSeeds seeds;
  for (const DeltaChoice choice : {DeltaChoice::kSmaller, DeltaChoice::kBitmap, DeltaChoice::kPairs}) {
    const std::vector<std::byte> file = make_delta(base, target, 1, 2, choice).value();
    seeds.inputs.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
  }
  seeds.tokens = {"FBYDELTA", std::string(8, '\0'), std::string(8, '\xff')};
  return seeds;
}
