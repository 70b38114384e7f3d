/// The parts that writer and reader share: docs/formats/trace.md.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "trace/trace.h"

namespace forebay::trace_format {

constexpr uint32_t kVersion = 1;

/// Enough for a frame to be worth its header, little enough to lose in a crash.
constexpr size_t kFrameBytes = 256 << 10;
constexpr uint32_t kRowsFrame = 0x53574f52;  // "ROWS"
constexpr uint32_t kEndFrame = 0x20444e45;   // "END "

/// What stands before a frame's payload.
struct FrameHeader {
  static constexpr size_t kBytes = 20;
  uint32_t kind = 0;
  uint32_t n_rows = 0;
  uint32_t payload_bytes = 0;
  uint64_t checksum = 0;  // of the three above and the payload
};

using forebay::checksum;
using forebay::get_le;
using forebay::put_le;

std::vector<std::byte> encode_frame_header(uint32_t kind, uint32_t n_rows,
                                           std::span<const std::byte> payload);
FrameHeader decode_frame_header(std::span<const std::byte> bytes);
/// The checksum that a frame with this header and payload should have.
uint64_t frame_checksum(const FrameHeader& header, std::span<const std::byte> payload);

/// kInvalidArgument, one line, for a geometry that a trace cannot hold.
Result<void> check(const TraceHeader& header);
std::vector<std::byte> encode(const TraceHeader& header);
/// The header at the start of a file and how many bytes it takes.
struct DecodedHeader {
  TraceHeader header;
  size_t n_bytes = 0;
};
Result<DecodedHeader> decode_header(std::span<const std::byte> file);

/// Bits of an expert's id.
inline int id_bits(const TraceHeader& header) {
  return std::bit_width(static_cast<uint32_t>(header.n_experts - 1));
}

}  // namespace forebay::trace_format
