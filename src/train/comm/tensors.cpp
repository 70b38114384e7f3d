#include "train/comm/tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/hash.h"
#include "train/comm/tensor_header.h"

namespace forebay::train {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 20;

constexpr std::pair<torch::ScalarType, ElementType> kTypes[] = {
    {torch::kFloat32, ElementType::kF32}, {torch::kFloat64, ElementType::kF64},
    {torch::kFloat16, ElementType::kF16}, {torch::kBFloat16, ElementType::kBF16},
    {torch::kInt64, ElementType::kI64},   {torch::kInt32, ElementType::kI32},
    {torch::kUInt8, ElementType::kU8},    {torch::kBool, ElementType::kBool}};

torch::ScalarType torch_type(ElementType type) {
  return std::find_if(std::begin(kTypes), std::end(kTypes), [type](auto t) { return t.second == type; })
      ->first;
}

std::span<uint8_t> bytes_in(const torch::Tensor& tensor) {
  return {static_cast<uint8_t*>(tensor.data_ptr()), tensor.nbytes()};
}

/// What is to be sent, as the wire has it.
struct Parcel {
  Bytes headers;
  std::vector<torch::Tensor> tensors;  // contiguous, on the CPU
};

Result<Parcel> parcel_of(const TensorMap& tensors) {
  Parcel parcel;
  std::vector<TensorHeader> headers;
  for (const auto& [name, tensor] : tensors) {
    const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                          [&](auto t) { return t.first == tensor.scalar_type(); });
    if (type == std::end(kTypes))
      return Error{Code::kUnsupported, fmt::format("tensor {} of type {} cannot be sent", name,
                                                   torch::toString(tensor.scalar_type()))};
    const torch::Tensor values = tensor.detach().to(torch::kCPU).contiguous();
    headers.push_back({.name = name,
                       .type = type->second,
                       .shape = values.sizes().vec(),
                       .content = fast_checksum(std::as_bytes(bytes_in(values)))});
    parcel.tensors.push_back(values);
  }
  parcel.headers = TRY(encode_tensor_headers(headers));
  return parcel;
}

/// The tensor that is announced, nothing in it yet.
Result<torch::Tensor> room_for(const TensorHeader& header) {
  try {
    return torch::empty(header.shape, torch_type(header.type));
  } catch (const std::exception&) {
    return Error{Code::kOutOfMemory,
                 fmt::format("tensor {} of {} [{}], for which there is no room", header.name,
                             name_of(header.type), fmt::join(header.shape, ", "))};
  }
}

/// With all its bytes there.
Result<void> put(const TensorHeader& header, const torch::Tensor& tensor, TensorMap& tensors) {
  const uint64_t sum = fast_checksum(std::as_bytes(bytes_in(tensor)));
  if (sum != header.content)
    return Error{Code::kCorrupt, fmt::format("tensor {} with checksum {:#x}, announced with {:#x}",
                                             header.name, sum, header.content)};
  if (!tensors.emplace(header.name, tensor).second)
    return Error{Code::kCorrupt, fmt::format("a tensor message with {} twice", header.name)};
  return {};
}

}  // namespace

Result<Bytes> pack_tensors(const TensorMap& tensors) {
  Parcel parcel = TRY(parcel_of(tensors));
  Bytes bytes = std::move(parcel.headers);
  for (const torch::Tensor& tensor : parcel.tensors) {
    const std::span<uint8_t> own = bytes_in(tensor);
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

Result<TensorMap> unpack_tensors(const Bytes& bytes) {
  const auto [headers, n_header_bytes] = TRY(decode_tensor_headers(bytes));
  uint64_t n_left = bytes.size() - n_header_bytes;
  for (const TensorHeader& header : headers) {
    const uint64_t n = TRY(tensor_bytes(header));
    if (n > n_left)
      return Error{Code::kCorrupt, fmt::format("a tensor message that ends in {}: {} bytes, wanted {}",
                                               header.name, n_left, n)};
    n_left -= n;
  }
  if (n_left != 0)
    return Error{Code::kCorrupt,
                 fmt::format("a tensor message with {} bytes behind its last tensor", n_left)};
  TensorMap tensors;
  size_t at = n_header_bytes;
  for (const TensorHeader& header : headers) {
    const torch::Tensor tensor = TRY(room_for(header));
    const std::span<uint8_t> own = bytes_in(tensor);
    if (!own.empty()) std::memcpy(own.data(), bytes.data() + at, own.size());
    at += own.size();
    TRY(put(header, tensor, tensors));
  }
  return tensors;
}

Result<void> send_tensors(Comm& comm, int to, uint64_t tag, const TensorMap& tensors) {
  Parcel parcel = TRY(parcel_of(tensors));
  TRY(comm.send(to, tag, std::move(parcel.headers)));
  for (const torch::Tensor& tensor : parcel.tensors) {
    const std::span<uint8_t> own = bytes_in(tensor);
    for (size_t at = 0; at < own.size(); at += kPieceBytes) {
      const std::span<uint8_t> piece = own.subspan(at, std::min(kPieceBytes, own.size() - at));
      TRY(comm.send(to, tag, Bytes(piece.begin(), piece.end())));
    }
  }
  return {};
}

namespace {

Result<TensorMap> receive(Comm& comm, int from, uint64_t tag) {
  const Bytes first = TRY(comm.recv(from, tag, std::numeric_limits<size_t>::max()));
  const auto [headers, n_header_bytes] = TRY(decode_tensor_headers(first));
  if (n_header_bytes != first.size())
    return Error{Code::kCorrupt,
                 fmt::format("{} bytes behind a tensor message's headers", first.size() - n_header_bytes)};
  TensorMap tensors;
  for (const TensorHeader& header : headers) {
    const torch::Tensor tensor = TRY(room_for(header));
    const std::span<uint8_t> own = bytes_in(tensor);
    for (size_t at = 0; at < own.size(); at += kPieceBytes) {
      const size_t n = std::min(kPieceBytes, own.size() - at);
      const Bytes piece = TRY(comm.recv(from, tag, std::numeric_limits<size_t>::max()));
      if (piece.size() != n)
        return Error{Code::kCorrupt,
                     fmt::format("{} bytes of tensor {} where {} were due", piece.size(), header.name, n)};
      std::memcpy(own.data() + at, piece.data(), n);
    }
    TRY(put(header, tensor, tensors));
  }
  return tensors;
}

}  // namespace

Result<TensorMap> recv_tensors(Comm& comm, int from, uint64_t tag) {
  Result<TensorMap> tensors = receive(comm, from, tag);
  // Errors of the circuit name their rank already.
  if (tensors || (tensors.error().code != Code::kCorrupt && tensors.error().code != Code::kOutOfMemory))
    return tensors;
  return Error{tensors.error().code, fmt::format("rank {} sent {}", from, tensors.error().message)};
}

}  // namespace forebay::train
