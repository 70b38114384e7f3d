/// What changed between two checkpoints as bf16 sees them: the values themselves, where their bits differ.
/// Values, not differences, so that a chain of deltas cannot drift. Format: docs/formats/delta.md. No torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "core/sha256.h"

namespace forebay::train {

/// A tensor's bits after rounding to bf16.
struct Bf16Tensor {
  std::vector<uint64_t> shape;
  std::vector<uint16_t> bits;
  bool operator==(const Bf16Tensor&) const = default;
};
using Bf16Tensors = std::map<std::string, Bf16Tensor>;

/// Of names, shapes and bits, in the order of names.
Sha256 hash_of(const Bf16Tensors& tensors);

enum class DeltaEncoding : uint8_t {
  kBitmap = 0,  // a bit per element, then the changed values: n / 8 + 2 c bytes
  kPairs = 1,   // an index of 32 bits and a value per change: 6 c bytes
};
enum class DeltaChoice { kSmaller, kBitmap, kPairs };

struct DeltaTensor {
  std::string name;
  std::vector<uint64_t> shape;
  DeltaEncoding encoding = DeltaEncoding::kBitmap;
  uint64_t n_elements = 0;
  uint64_t n_changed = 0;
  uint64_t offset = 0;  // of its payload, in the file
  uint64_t bytes = 0;   // of its payload
};

/// A delta's bytes and what they say; every index and length has been checked.
struct Delta {
  uint64_t base_step = 0;  // the checkpoint that it goes onto
  uint64_t step = 0;       // the one that results
  Sha256 base_hash = {}, target_hash = {};
  std::vector<DeltaTensor> tensors;
  std::vector<std::byte> file;

  uint64_t n_elements() const;
  uint64_t n_changed() const;
};

/// Errors: kInvalidArgument when the two have other tensors or shapes, or step is not behind base_step.
Result<std::vector<std::byte>> make_delta(const Bf16Tensors& base, const Bf16Tensors& target,
                                          uint64_t base_step, uint64_t step,
                                          DeltaChoice choice = DeltaChoice::kSmaller);

/// `name` is what errors call it. Errors: kCorrupt, kUnsupported for a newer version.
Result<Delta> parse_delta(std::vector<std::byte> file, std::string_view name);

/// Calls on_value(element, bits) for every change of one tensor, in order.
template <typename OnValue>
void for_each_change(const Delta& delta, const DeltaTensor& tensor, const OnValue& on_value);

/// Whether the delta may go onto a checkpoint of this step and these tensors, and leads to what it promises.
/// The tensors then hold the target. Errors, which leave them as they were: kInvalidArgument for a gap in the
/// chain of steps, another base, other tensors; kCorrupt when the result is not the promised one.
Result<void> apply_delta(const Delta& delta, uint64_t at_step, Bf16Tensors& tensors);

template <typename OnValue>
void for_each_change(const Delta& delta, const DeltaTensor& tensor, const OnValue& on_value) {
  const auto* payload = reinterpret_cast<const uint8_t*>(delta.file.data() + tensor.offset);
  const auto value_at = [](const uint8_t* at) { return static_cast<uint16_t>(at[0] | at[1] << 8); };
  if (tensor.encoding == DeltaEncoding::kBitmap) {
    const uint64_t n_bytes = (tensor.n_elements + 7) / 8;
    const uint8_t* value = payload + n_bytes;
    for (uint64_t byte = 0; byte < n_bytes; ++byte)
      for (unsigned bits = payload[byte]; bits != 0; bits &= bits - 1, value += 2)
        on_value(byte * 8 + static_cast<uint64_t>(__builtin_ctz(bits)), value_at(value));
    return;
  }
  const uint8_t* value = payload + 4 * tensor.n_changed;
  for (uint64_t i = 0; i < tensor.n_changed; ++i) {
    const uint8_t* at = payload + 4 * i;
    on_value(at[0] | at[1] << 8 | at[2] << 16 | uint64_t{at[3]} << 24, value_at(value + 2 * i));
  }
}

}  // namespace forebay::train
