#include <algorithm>

#include <fmt/format.h>

#include "trace/bits.h"
#include "trace/format.h"
#include "trace/trace.h"

namespace forebay {
namespace format = trace_format;

struct TraceReader::Impl {
  std::string name;
  std::unique_ptr<Mapping> mapping;
  std::span<const std::byte> bytes;
  TraceHeader header;

  size_t at = 0;        // the next frame
  size_t frame_at = 0;  // the one being read
  uint32_t n_left = 0;  // rows of it
  uint64_t n_rows = 0;
  bool ended = false;
  bool complete = false;
  BitReader bits;

  // As in the writer.
  bool first_of_frame = true;
  int32_t block = -1;
  RoutePhase phase = RoutePhase::kDecode;
  std::vector<int32_t> tokens, earlier_tokens;

  std::vector<uint16_t> ids, gaps, chosen;
  std::vector<uint64_t> seen;  // by expert: the last list that named it
  uint64_t n_lists = 0;

  Error corrupt(std::string_view what) const {
    return {Code::kCorrupt, fmt::format("{}: frame at byte {}: {}", name, frame_at, what)};
  }
  void end(bool whole) {
    ended = true;
    complete = whole;
  }
  Result<void> start_frame();
  Result<void> take_request(TraceRow& row);
  Result<void> take_ids(std::vector<uint16_t>& list);
  Result<void> take_candidates(TraceRow& row);
  Result<TraceRow> take_row();
};

/// Moves to the next frame of rows, or to the end.
Result<void> TraceReader::Impl::start_frame() {
  frame_at = at;
  const std::span<const std::byte> rest = bytes.subspan(at);
  if (rest.size() < format::FrameHeader::kBytes) {
    end(false);
    return {};
  }
  const format::FrameHeader frame = format::decode_frame_header(rest);
  if (frame.kind != format::kRowsFrame && frame.kind != format::kEndFrame)
    return corrupt(fmt::format("kind {:08x}, expected ROWS or END", frame.kind));
  const std::span<const std::byte> body = rest.subspan(format::FrameHeader::kBytes);
  if (frame.payload_bytes > body.size()) {
    end(false);
    return {};
  }
  const std::span<const std::byte> payload = body.first(frame.payload_bytes);
  if (const uint64_t sum = format::frame_checksum(frame, payload); sum != frame.checksum) {
    // The last frame may have been cut short while its bytes were on their way.
    if (payload.size() != body.size())
      return corrupt(fmt::format("checksum {:016x}, its bytes give {:016x}", frame.checksum, sum));
    end(false);
    return {};
  }
  at += format::FrameHeader::kBytes + payload.size();
  if (frame.kind == format::kEndFrame) {
    if (payload.size() != 8 || format::get_le<uint64_t>(payload, 0) != n_rows)
      return corrupt(fmt::format("an end mark that does not count the {} rows before it", n_rows));
    if (at != bytes.size()) return corrupt(fmt::format("{} bytes after the end mark", bytes.size() - at));
    end(true);
    return {};
  }
  if (frame.n_rows == 0) return corrupt("no rows");
  n_left = frame.n_rows;
  bits = BitReader(payload);
  first_of_frame = true;
  block = -1;
  phase = RoutePhase::kDecode;
  tokens.clear();
  return {};
}

Result<void> TraceReader::Impl::take_request(TraceRow& row) {
  row.starts_request = bits.take(1) == 1;
  if (!row.starts_request && first_of_frame) return corrupt("it begins inside a request");
  first_of_frame = false;
  if (row.starts_request) {
    if (bits.take(1) == 1) {
      ++block;
    } else {
      block = static_cast<int32_t>(bits.take(16));
      const uint32_t number = bits.take(2);
      if (number > static_cast<uint32_t>(RoutePhase::kDraft)) return corrupt("phase 3, expected 0 to 2");
      phase = static_cast<RoutePhase>(number);
    }
    if (block >= header.n_blocks())
      return corrupt(fmt::format("block {}, the header has {}", block, header.n_blocks()));
    if (header.expert_bytes[block] == 0)
      return corrupt(fmt::format("block {}, which has no experts by the header", block));
    std::swap(tokens, earlier_tokens);
    tokens.clear();
  }
  row.block = block;
  row.phase = phase;
  const size_t index = tokens.size();
  if (bits.take(1) == 0)
    row.token = static_cast<int32_t>(bits.take(32));
  else if (index < earlier_tokens.size())
    row.token = earlier_tokens[index];
  else
    return corrupt("a token like one that is not there");
  tokens.push_back(row.token);
  return {};
}

Result<void> TraceReader::Impl::take_ids(std::vector<uint16_t>& list) {
  ++n_lists;
  for (uint16_t& id : list) {
    id = static_cast<uint16_t>(bits.take(format::id_bits(header)));
    if (id >= header.n_experts)
      return corrupt(fmt::format("expert {}, the header has {}", id, header.n_experts));
    if (std::exchange(seen[id], n_lists) == n_lists)
      return corrupt(fmt::format("expert {} twice in one list", id));
  }
  return {};
}

Result<void> TraceReader::Impl::take_candidates(TraceRow& row) {
  row.candidates.top = static_cast<int32_t>(bits.take(24)) - (1 << 23);
  row.candidates.log_sum = static_cast<uint16_t>(bits.take(16));
  TRY(take_ids(ids));
  const int shift = static_cast<int>(bits.take(4));
  uint32_t gap = 0;
  for (size_t r = 1; r < gaps.size(); ++r) {
    gap += take_rice(bits, shift);
    if (gap > UINT16_MAX) return corrupt(fmt::format("a gap of {} steps, expected at most 65535", gap));
    gaps[r] = static_cast<uint16_t>(gap);
  }
  row.candidates.ids = ids;
  row.candidates.gaps = gaps;
  return {};
}

Result<TraceRow> TraceReader::Impl::take_row() {
  TraceRow row;
  TRY(take_request(row));
  TRY(take_candidates(row));
  if (bits.take(1) == 1)
    std::copy_n(ids.begin(), chosen.size(), chosen.begin());
  else
    TRY(take_ids(chosen));
  row.chosen = chosen;
  if (bits.overrun()) return corrupt("its rows need more bytes than it has");
  if (--n_left == 0 && !bits.at_end()) return corrupt("bytes after its last row");
  ++n_rows;
  return row;
}

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::open(Storage& storage, const Path& path) {
  auto impl = std::make_unique<Impl>();
  impl->name = path.string();
  const std::unique_ptr<ReadableFile> file = TRY(storage.open(path));
  impl->mapping = TRY(file->map());
  impl->bytes = impl->mapping->bytes();
  Result<format::DecodedHeader> decoded = format::decode_header(impl->bytes);
  if (!decoded) return std::move(decoded.error()).in(impl->name);
  impl->header = std::move(decoded->header);
  impl->at = decoded->n_bytes;
  impl->ids.resize(impl->header.n_candidates());
  impl->gaps.resize(impl->header.n_candidates());
  impl->chosen.resize(impl->header.n_used);
  impl->seen.resize(impl->header.n_experts);
  return TraceReader(std::move(impl));
}

const TraceHeader& TraceReader::header() const {
  return impl_->header;
}

Result<std::optional<TraceRow>> TraceReader::next() {
  Impl& r = *impl_;
  if (r.n_left == 0 && !r.ended) TRY(r.start_frame());
  if (r.ended) return std::optional<TraceRow>();
  return std::optional<TraceRow>(TRY(r.take_row()));
}

bool TraceReader::complete() const {
  return impl_->complete;
}

}  // namespace forebay
