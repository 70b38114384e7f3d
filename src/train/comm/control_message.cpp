#include "train/comm/control_message.h"

#include <algorithm>

#include <fmt/format.h>

namespace forebay::train {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxParts = 1 << 20;

void put(Bytes& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

uint32_t number_at(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

/// Takes from the front of what is left.
struct Reader {
  std::span<const uint8_t> rest;

  Result<uint32_t> number() {
    const std::span<const uint8_t> bytes = TRY(take(4));
    return number_at(bytes.data());
  }
  Result<std::span<const uint8_t>> take(size_t n) {
    if (n > rest.size())
      return Error{Code::kCorrupt, fmt::format("control message: {} bytes left, {} needed", rest.size(), n)};
    const std::span<const uint8_t> bytes = rest.first(n);
    rest = rest.subspan(n);
    return bytes;
  }
};

}  // namespace

Bytes encode(const ControlMessage& message) {
  Bytes body;
  body.push_back(static_cast<uint8_t>(message.kind));
  put(body, static_cast<uint32_t>(message.rank));
  put(body, static_cast<uint32_t>(message.size));
  put(body, static_cast<uint32_t>(message.name.size()));
  body.insert(body.end(), message.name.begin(), message.name.end());
  put(body, static_cast<uint32_t>(message.parts.size()));
  for (const Bytes& part : message.parts) {
    put(body, static_cast<uint32_t>(part.size()));
    body.insert(body.end(), part.begin(), part.end());
  }
  Bytes out;
  put(out, static_cast<uint32_t>(body.size()));
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

Result<ControlMessage> decode(std::span<const uint8_t> body) {
  Reader reader{body};
  ControlMessage message;
  const std::span<const uint8_t> kind = TRY(reader.take(1));
  if (kind[0] < 1 || kind[0] > static_cast<uint8_t>(ControlMessage::Kind::kBye))
    return Error{Code::kCorrupt, fmt::format("control message of kind {}: 1 to 6", kind[0])};
  message.kind = static_cast<ControlMessage::Kind>(kind[0]);
  message.rank = static_cast<int32_t>(TRY(reader.number()));
  message.size = static_cast<int32_t>(TRY(reader.number()));
  const uint32_t name_size = TRY(reader.number());
  const std::span<const uint8_t> name = TRY(reader.take(name_size));
  message.name.assign(name.begin(), name.end());
  const uint32_t n_parts = TRY(reader.number());
  if (n_parts > kMaxParts || n_parts > reader.rest.size())
    return Error{Code::kCorrupt,
                 fmt::format("control message of {} parts in {} bytes", n_parts, body.size())};
  for (uint32_t i = 0; i < n_parts; ++i) {
    const uint32_t part_size = TRY(reader.number());
    const std::span<const uint8_t> part = TRY(reader.take(part_size));
    message.parts.emplace_back(part.begin(), part.end());
  }
  if (!reader.rest.empty())
    return Error{Code::kCorrupt, fmt::format("control message: {} bytes after its end", reader.rest.size())};
  return message;
}

Result<std::optional<ControlMessage>> MessageBuffer::next() {
  if (bytes_.size() < kLengthBytes) return std::optional<ControlMessage>();
  const size_t length = number_at(bytes_.data());
  if (length > max_bytes_)
    return Error{Code::kCorrupt, fmt::format("control message of {} bytes: at most {}", length, max_bytes_)};
  if (bytes_.size() < kLengthBytes + length) return std::optional<ControlMessage>();
  ControlMessage message = TRY(decode(std::span<const uint8_t>(bytes_).subspan(kLengthBytes, length)));
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(kLengthBytes + length));
  return std::optional<ControlMessage>(std::move(message));
}

}  // namespace forebay::train
