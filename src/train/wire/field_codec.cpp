#include "train/wire/field_codec.h"

#include <fmt/format.h>

#include "train/wire/pack.h"

namespace forebay::train {
namespace {

int64_t bytes_of(const Field& field, int64_t n_rows) {
  return packed_bytes(n_rows * field.columns, field.bits);
}

torch::Tensor plain_rows(const torch::Tensor& x_NW) {
  return x_NW.detach().to(torch::kFloat).contiguous();
}

}  // namespace

size_t FieldCodec::payload_bytes(int64_t n_rows, int64_t width, Leg leg) const {
  size_t bytes = 0;
  for (const Field& field : fields(width, leg)) bytes += bytes_of(field, n_rows);
  return bytes;
}

torch::Tensor FieldCodec::view(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) {
  const torch::NoGradGuard no_grad;
  const Fields measured = measure(plain_rows(x_NW), key, Leg::kForward);
  const torch::Tensor kept = link(measured);
  if (saved != nullptr) *saved = kept;
  return rebuild(measured, x_NW.size(1), key, Leg::kForward, kept);
}

torch::Tensor FieldCodec::gradient_view(const torch::Tensor& g_NW, const WireKey& key,
                                        const torch::Tensor& saved) {
  const torch::NoGradGuard no_grad;
  return rebuild(measure(plain_rows(g_NW), key, Leg::kBackward), g_NW.size(1), key, Leg::kBackward, saved);
}

Payload FieldCodec::encode(const torch::Tensor& x_NW, const WireKey& key, torch::Tensor* saved) {
  const torch::NoGradGuard no_grad;
  const Fields measured = measure(plain_rows(x_NW), key, Leg::kForward);
  if (saved != nullptr) *saved = link(measured);
  return pack(measured, x_NW.size(0), x_NW.size(1), Leg::kForward);
}

Result<torch::Tensor> FieldCodec::decode(const Payload& payload, int64_t n_rows, int64_t width,
                                         const WireKey& key, torch::Tensor* saved) {
  const torch::NoGradGuard no_grad;
  const Fields received = TRY(unpack(payload, n_rows, width, Leg::kForward));
  const torch::Tensor kept = link(received);
  if (saved != nullptr) *saved = kept;
  return rebuild(received, width, key, Leg::kForward, kept);
}

Payload FieldCodec::encode_gradient(const torch::Tensor& g_NW, const WireKey& key, const torch::Tensor&) {
  const torch::NoGradGuard no_grad;
  return pack(measure(plain_rows(g_NW), key, Leg::kBackward), g_NW.size(0), g_NW.size(1), Leg::kBackward);
}

Result<torch::Tensor> FieldCodec::decode_gradient(const Payload& payload, int64_t n_rows, int64_t width,
                                                  const WireKey& key, const torch::Tensor& saved) {
  const torch::NoGradGuard no_grad;
  const Fields received = TRY(unpack(payload, n_rows, width, Leg::kBackward));
  return rebuild(received, width, key, Leg::kBackward, saved);
}

Payload FieldCodec::pack(const Fields& measured, int64_t n_rows, int64_t width, Leg leg) const {
  const std::vector<Field> shapes = fields(width, leg);
  std::vector<torch::Tensor> parts;
  for (size_t i = 0; i < shapes.size(); ++i)
    parts.push_back(shapes[i].bits == 16 ? bf16_bytes(measured[i]) : pack_bits(measured[i], shapes[i].bits));
  const torch::Tensor stream =
      (parts.size() == 1 ? parts[0] : torch::cat(parts)).cpu();  // one copy from the device
  Payload payload;
  const uint8_t* const bytes = stream.data_ptr<uint8_t>();
  payload.bytes.assign(bytes, bytes + stream.numel());
  payload.logical_bits =
      static_cast<double>(n_rows) * (leg == Leg::kForward ? forward_bits(width) : backward_bits(width));
  return payload;
}

Result<Fields> FieldCodec::unpack(const Payload& payload, int64_t n_rows, int64_t width, Leg leg) const {
  const std::vector<Field> shapes = fields(width, leg);
  int64_t wanted = 0;
  for (const Field& shape : shapes) wanted += bytes_of(shape, n_rows);
  if (static_cast<int64_t>(payload.bytes.size()) != wanted)
    return Error{Code::kCorrupt, fmt::format("codec {}: a payload of {} bytes for {} rows of {}, wanted {}",
                                             name(), payload.bytes.size(), n_rows, width, wanted)};
  // Fields on the CPU are views of the payload: what rebuild() makes of them is not.
  const torch::Tensor stream =
      torch::from_blob(const_cast<uint8_t*>(payload.bytes.data()), {wanted}, torch::kUInt8).to(device_);
  Fields received;
  int64_t at = 0;
  for (const Field& shape : shapes) {
    const torch::Tensor bytes = stream.slice(0, at, at + bytes_of(shape, n_rows));
    // What begins at an odd byte is no array of 16-bit numbers.
    const torch::Tensor flat = shape.bits == 16 ? bf16_from_bytes(at % 2 == 0 ? bytes : bytes.clone())
                                                : unpack_bits(bytes, n_rows * shape.columns, shape.bits);
    received.push_back(flat.reshape({n_rows, shape.columns}));
    at += bytes_of(shape, n_rows);
  }
  return received;
}

}  // namespace forebay::train
