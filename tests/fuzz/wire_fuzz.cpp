/// Any bytes as a payload: refused when the size is wrong; otherwise rows of the right shape, the same ones
/// each time. Also any bytes as a basis that arrives.
#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "train/wire/basis.h"
#include "train/wire/codecs.h"
#include "train/wire/make_codec.h"

namespace forebay::train {
namespace {

constexpr int64_t kWidth = 37;  // no multiple of a group
constexpr const char* kNames[] = {"dense", "prf", "sr", "rn", "prf-sr", "powersgd", "frlr", "frlr-unbiased"};
constexpr size_t kHeader = 3;  // codec, bits, rows

CodecOptions options_of(uint8_t name, uint8_t bits) {
  return resolve_codec_options({.name = kNames[name % 8], .keep = 0.2, .bits = 1 + bits % 8}, kWidth).value();
}

std::unique_ptr<Codec> codec_of(const CodecOptions& options) {
  if (options.name == "prf") return make_prf_codec(options, kWidth);
  if (options.name == "prf-sr") return make_prf_rounding_codec(options, kWidth);
  if (options.name == "sr" || options.name == "rn") return make_rounding_codec(options);
  if (options.name == "powersgd") return make_powersgd_codec(options, kWidth);
  if (options.name == "dense") return make_dense_codec();
  return make_frlr_codec(options, kWidth);
}

/// The same bits, whatever they mean.
bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

void check(Codec& codec, Leg leg, const Payload& payload, int64_t n_rows) {
  const auto decode = [&] {
    const torch::Tensor gamma = torch::ones({n_rows, 1});
    return leg == Leg::kForward ? codec.decode(payload, n_rows, kWidth, {}, nullptr)
                                : codec.decode_gradient(payload, n_rows, kWidth, {}, gamma);
  };
  const Result<torch::Tensor> rows = decode();
  const bool fits = payload.bytes.size() == codec.payload_bytes(n_rows, kWidth, leg);
  FUZZ_ASSERT(rows.has_value() == fits);
  if (!rows) {
    FUZZ_ASSERT(rows.error().code == Code::kCorrupt && !rows.error().message.empty());
    return;
  }
  FUZZ_ASSERT(rows->dim() == 2 && rows->size(0) == n_rows && rows->size(1) == kWidth);
  FUZZ_ASSERT(same_bits(rows->contiguous(), decode()->contiguous()));
}

std::string seed(uint8_t name, uint8_t bits, uint8_t n_rows, Leg leg) {
  std::string input = {static_cast<char>(name), static_cast<char>(bits), static_cast<char>(n_rows)};
  const std::unique_ptr<Codec> codec = codec_of(options_of(name, bits));
  input.append(codec->payload_bytes(n_rows, kWidth, leg), '\x5a');
  return input;
}

}  // namespace
}  // namespace forebay::train

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay::train;
  if (size < kHeader) return 0;
  const std::unique_ptr<Codec> codec = codec_of(options_of(data[0], data[1]));
  const Payload payload{{data + kHeader, data + size}, 0};
  for (const Leg leg : {Leg::kForward, Leg::kBackward}) check(*codec, leg, payload, data[2] % 8);
  if (BasisBank* const bank = codec->basis()) {
    const bool taken = bank->set_pending(0, payload.bytes).has_value();
    FUZZ_ASSERT(taken == bank->has_pending());
  }
  return 0;
}

FuzzSeeds fuzz_seeds() {
  using namespace forebay::train;
  torch::set_num_threads(1);
  FuzzSeeds seeds;
  for (uint8_t name = 0; name < 8; ++name)
    for (const uint8_t bits : {0, 2, 3, 7})
      for (const Leg leg : {Leg::kForward, Leg::kBackward}) seeds.inputs.push_back(seed(name, bits, 3, leg));
  seeds.tokens = {std::string("\x80\x7f", 2), std::string("\xc0\x7f", 2), std::string("\xff\xff", 2)};
  return seeds;
}
