/// Any bytes at the port where the processes of a run meet: messages, or an error, never more memory than
/// came.
#include <algorithm>
#include <cstdint>

#include "fuzz.h"
#include "train/comm/control_message.h"
#include "train/comm/transport.h"

namespace {

using namespace forebay::train;

std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (const auto message = decode(bytes)) {
    const Bytes again = encode(*message);
    FUZZ_ASSERT(again.size() == size + 4 && std::equal(bytes.begin(), bytes.end(), again.begin() + 4));
  }
  // As a stream, in pieces.
  MessageBuffer buffer(MessageBuffer::kMaxHelloBytes);
  const size_t piece = size % 7 + 1;
  for (size_t at = 0; at < size; at += piece) {
    buffer.add(bytes.subspan(at, std::min(piece, size - at)));
    const auto message = buffer.next();
    if (!message) break;
  }
  if (size >= kFrameHeaderBytes) {
    const auto header = get_frame_header(bytes.first<kFrameHeaderBytes>());
    if (header) FUZZ_ASSERT(header->second <= UINT32_MAX);
  }
  return 0;
}

FuzzSeeds fuzz_seeds() {
  using Kind = ControlMessage::Kind;
  FuzzSeeds seeds;
  for (const ControlMessage& message :
       {ControlMessage{.kind = Kind::kHello, .rank = 1, .size = 4, .name = "forebay 1"},
        ControlMessage{.kind = Kind::kRelease, .name = "pipe/addresses", .parts = {{1, 2}, {}, {3}}},
        ControlMessage{.kind = Kind::kFailed, .rank = -1, .name = "rank 2 is gone"}}) {
    const std::string whole = text_of(encode(message));
    seeds.inputs.push_back(whole);
    seeds.inputs.push_back(whole.substr(4));
  }
  seeds.tokens = {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4), std::string("\1\0\0\0", 4),
                  "forebay 1"};
  return seeds;
}
