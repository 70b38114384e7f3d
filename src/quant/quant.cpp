#include "quant/quant.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "core/ensure.h"
#include "quant/block.h"

namespace forebay {
namespace {

constexpr size_t kIdLimit = 64;  // above every id of DType
constexpr float kLargestHalf = 65504;

std::array<const Codec*, kIdLimit> table_by_id() {
  std::array<const Codec*, kIdLimit> table{};
  for (std::span<const Codec> family :
       {plain_codecs(), simple_block_codecs(), k_affine_codecs(), k_symmetric_codecs(), iq1_codecs(),
        iq2_codecs(), iq3_codecs(), iq4_codecs(), ternary_codecs(), fp4_codecs()})
    for (const Codec& codec : family) table[static_cast<size_t>(codec.type)] = &codec;
  return table;
}

/// Index of the first value that is infinite or NaN, or in.size().
size_t first_not_finite(std::span<const float> in) {
  return static_cast<size_t>(
      std::find_if_not(in.begin(), in.end(), [](float value) { return std::isfinite(value); }) - in.begin());
}

/// Index of the first weight of largest magnitude.
size_t index_of_largest(std::span<const float> in) {
  const auto smaller = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
  return static_cast<size_t>(std::max_element(in.begin(), in.end(), smaller) - in.begin());
}

/// Index of the first value that is its block's largest, out of range of a half (as most scales are stored),
/// and does not come back from the block; or in.size().
size_t first_overflow(const Codec& codec, std::span<const float> in, const std::byte* blocks) {
  const DTypeInfo& type = info(codec.type);
  const auto block_weights = static_cast<size_t>(type.block_weights);
  std::array<float, 256> w;  // the largest block
  for (size_t begin = 0; begin < in.size(); begin += block_weights, blocks += type.block_bytes) {
    const size_t i = index_of_largest(in.subspan(begin, block_weights));
    if (std::fabs(in[begin + i]) <= kLargestHalf) continue;
    codec.decode(blocks, type.block_weights, w.data());
    const float ratio = w[i] / in[begin + i];
    if (!(ratio >= 0.25f && ratio <= 4)) return begin + i;
  }
  return in.size();
}

}  // namespace

const Codec* find_codec(DType type) {
  static const auto kTable = table_by_id();
  const auto id = static_cast<size_t>(type);
  return id < kIdLimit ? kTable[id] : nullptr;
}

void decode_row(DType type, const std::byte* blocks, int64_t n, float* out) {
  const Codec* codec = find_codec(type);
  ENSURE(codec != nullptr, "asked to decode a type that holds no weights");
  ENSURE(n % info(type).block_weights == 0, "asked to decode a part of a block");
  codec->decode(blocks, n, out);
}

Result<void> encode_row(DType type, std::span<const float> in, std::byte* blocks) {
  const Codec* codec = find_codec(type);
  if (codec == nullptr || codec->encode == nullptr)
    return Error{Code::kUnsupported, fmt::format("{}: no encoder for this type", name_of(type))};
  const auto n = static_cast<int64_t>(in.size());
  const int block_weights = info(type).block_weights;
  if (n % block_weights != 0)
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: {} values, wanted a multiple of {}", name_of(type), n, block_weights)};
  if (const size_t bad = first_not_finite(in); bad < in.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: value {} is {}, wanted a finite number", name_of(type), bad, in[bad])};
  codec->encode(in.data(), n, blocks);

  if (const size_t bad = first_overflow(*codec, in, blocks); bad < in.size())
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: value {} is {}, too large for this type", name_of(type), bad, in[bad])};
  return {};
}

}  // namespace forebay
