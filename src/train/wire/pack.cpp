#include "train/wire/pack.h"

#include <bit>

#include "train/wire/quantize_rows.h"

namespace forebay::train {

static_assert(std::endian::native == std::endian::little, "tensors are viewed as little-endian bytes");

// Eight codes of b bits are b bytes: one 64-bit word holds them.

torch::Tensor pack_bits(const torch::Tensor& codes, int bits) {
  const torch::Tensor flat = codes.reshape({-1});
  if (bits == 8) return flat.contiguous();
  if (!flat.is_cpu()) return pack_bits_with_tensors(flat, bits);
  const torch::Tensor packed = torch::empty({packed_bytes(flat.numel(), bits)}, torch::kUInt8);
  pack_codes(flat.contiguous().data_ptr<uint8_t>(), flat.numel(), bits, packed.data_ptr<uint8_t>());
  return packed;
}

torch::Tensor unpack_bits(const torch::Tensor& packed, int64_t n_codes, int bits) {
  if (bits == 8) return packed;
  if (!packed.is_cpu()) return unpack_bits_with_tensors(packed, n_codes, bits);
  const torch::Tensor codes = torch::empty({n_codes}, torch::kUInt8);
  unpack_codes(packed.contiguous().data_ptr<uint8_t>(), n_codes, bits, codes.data_ptr<uint8_t>());
  return codes;
}

torch::Tensor pack_bits_with_tensors(const torch::Tensor& codes, int bits) {
  const torch::Tensor flat = codes.reshape({-1});
  const int64_t n = flat.numel();
  const int64_t n_words = (n + 7) / 8;
  const torch::Tensor by_word =
      torch::constant_pad_nd(flat, {0, 8 * n_words - n}).reshape({n_words, 8}).to(torch::kInt64);
  torch::Tensor word = by_word.select(1, 0).clone();
  for (int64_t i = 1; i < 8; ++i) word.bitwise_or_(by_word.select(1, i).bitwise_left_shift(bits * i));
  torch::Tensor bytes = torch::empty({n_words, bits}, flat.options());
  for (int64_t i = 0; i < bits; ++i)
    bytes.select(1, i).copy_(word.bitwise_right_shift(8 * i).bitwise_and_(0xff));
  return bytes.reshape({-1}).slice(0, 0, packed_bytes(n, bits)).contiguous();
}

torch::Tensor unpack_bits_with_tensors(const torch::Tensor& packed, int64_t n_codes, int bits) {
  const int64_t n_words = (n_codes + 7) / 8;
  const torch::Tensor by_word = torch::constant_pad_nd(packed, {0, n_words * bits - packed.numel()})
                                    .reshape({n_words, bits})
                                    .to(torch::kInt64);
  torch::Tensor word = torch::zeros({n_words}, by_word.options());
  for (int64_t i = 0; i < bits; ++i) word.bitwise_or_(by_word.select(1, i).bitwise_left_shift(8 * i));
  torch::Tensor codes = torch::empty({n_words, 8}, packed.options());
  for (int64_t i = 0; i < 8; ++i)
    codes.select(1, i).copy_(word.bitwise_right_shift(bits * i).bitwise_and_((1 << bits) - 1));
  return codes.reshape({-1}).slice(0, 0, n_codes);
}

torch::Tensor bf16_bytes(const torch::Tensor& values) {
  return values.contiguous().reshape({-1}).view(torch::kUInt8);
}

torch::Tensor bf16_from_bytes(const torch::Tensor& bytes) {
  return bytes.contiguous().view(torch::kBFloat16);
}

}  // namespace forebay::train
