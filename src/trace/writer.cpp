#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "core/ensure.h"
#include "trace/bits.h"
#include "trace/format.h"
#include "trace/trace.h"

namespace forebay {
namespace format = trace_format;

struct TraceWriter::Impl {
  Impl(std::unique_ptr<WritableFile> f, TraceHeader h)
      : file(std::move(f)), header(std::move(h)), ranker(header.n_experts) {
    const auto has_experts = [](uint64_t bytes) { return bytes > 0; };
    one_block = std::count_if(header.expert_bytes.begin(), header.expert_bytes.end(), has_experts) == 1;
  }

  /// Rows of a window follow each other at a block. Where one block follows itself, nothing tells windows
  /// apart.
  bool starts_request(const RouteEvent& event) const {
    return n_frame_rows == 0 || one_block || event.phase == RoutePhase::kDraft || event.block != block ||
           event.phase != phase;
  }
  void put_request(const RouteEvent& event, bool starts);
  void put_token(int32_t token);
  void put_candidates(const RouteCandidates& row);
  void put_chosen(const RouteCandidates& row, std::span<const int32_t> chosen);
  void keep(Result<void> result) {
    if (!result && !error) error = std::move(result).error();
  }
  void write_frame();

  std::unique_ptr<WritableFile> file;
  const TraceHeader header;
  bool one_block = false;
  RouteRanker ranker;
  BitWriter bits;
  std::optional<Error> error;
  uint64_t n_rows = 0;

  // What rows are written relative to; forgotten at a frame's start.
  uint32_t n_frame_rows = 0;
  int32_t block = -1;
  RoutePhase phase = RoutePhase::kDecode;
  std::vector<int32_t> tokens, earlier_tokens;  // of this request and the one before
};

void TraceWriter::Impl::put_request(const RouteEvent& event, bool starts) {
  bits.put(starts ? 1 : 0, 1);
  if (!starts) return;
  const bool next = event.block == block + 1 && event.phase == phase;
  bits.put(next ? 1 : 0, 1);
  if (!next) {
    bits.put(static_cast<uint32_t>(event.block), 16);
    bits.put(static_cast<uint32_t>(event.phase), 2);
  }
  block = event.block;
  phase = event.phase;
  std::swap(tokens, earlier_tokens);
  tokens.clear();
}

void TraceWriter::Impl::put_token(int32_t token) {
  const size_t row = tokens.size();
  const bool same = row < earlier_tokens.size() && earlier_tokens[row] == token;
  bits.put(same ? 1 : 0, 1);
  if (!same) bits.put(static_cast<uint32_t>(token), 32);
  tokens.push_back(token);
}

void TraceWriter::Impl::put_candidates(const RouteCandidates& row) {
  bits.put(static_cast<uint32_t>(row.top + (1 << 23)), 24);
  bits.put(row.log_sum, 16);
  const int n_bits = format::id_bits(header);
  for (const uint16_t id : row.ids) bits.put(id, n_bits);
  // Differences spread like an exponential's; a shift near log2 of their mean codes that well.
  const size_t n = row.gaps.size();
  const uint32_t mean = n > 1 ? row.gaps[n - 1] / static_cast<uint32_t>(n - 1) : 0;
  const int shift = std::max(static_cast<int>(std::bit_width(mean)) - 1, 0);
  bits.put(static_cast<uint32_t>(shift), 4);
  for (size_t r = 1; r < n; ++r) put_rice(bits, static_cast<uint16_t>(row.gaps[r] - row.gaps[r - 1]), shift);
}

void TraceWriter::Impl::put_chosen(const RouteCandidates& row, std::span<const int32_t> chosen) {
  const bool first_ranks = std::equal(chosen.begin(), chosen.end(), row.ids.begin());
  bits.put(first_ranks ? 1 : 0, 1);
  if (first_ranks) return;
  for (const int32_t id : chosen) bits.put(static_cast<uint32_t>(id), format::id_bits(header));
}

void TraceWriter::Impl::write_frame() {
  if (n_frame_rows == 0) return;
  const std::span<const std::byte> payload = bits.finish();
  keep(file->append(format::encode_frame_header(format::kRowsFrame, n_frame_rows, payload)));
  if (!error) keep(file->append(payload));
  bits.clear();
  n_frame_rows = 0;
  block = -1;
  phase = RoutePhase::kDecode;
  tokens.clear();
}

TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWriter::~TraceWriter() = default;

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(Storage& storage, const Path& path,
                                                         TraceHeader header) {
  TRY(format::check(header));
  std::unique_ptr<WritableFile> file = TRY(storage.create(path));
  TRY(file->append(format::encode(header)));
  return std::unique_ptr<TraceWriter>(
      new TraceWriter(std::make_unique<Impl>(std::move(file), std::move(header))));
}

void TraceWriter::on_route(const RouteEvent& event) {
  Impl& w = *impl_;
  if (w.error) return;
  ENSURE(event.block >= 0 && event.block < w.header.n_blocks() && w.header.expert_bytes[event.block] > 0,
         "trace: a block that has no experts by the header");
  ENSURE(static_cast<int32_t>(event.chosen.size()) == w.header.n_used, "trace: chosen experts per row");
  const bool starts = w.starts_request(event);
  // Frames hold whole requests, so that each can be read without the one before.
  if (starts && w.bits.n_bytes() >= format::kFrameBytes) w.write_frame();
  const RouteCandidates row = w.ranker.rank(event.logits_E);
  w.put_request(event, starts);
  w.put_token(event.token);
  w.put_candidates(row);
  w.put_chosen(row, event.chosen);
  ++w.n_frame_rows;
  ++w.n_rows;
}

Result<void> TraceWriter::finish() {
  Impl& w = *impl_;
  w.write_frame();
  std::vector<std::byte> total;
  format::put_le(total, w.n_rows);
  if (!w.error) w.keep(w.file->append(format::encode_frame_header(format::kEndFrame, 0, total)));
  if (!w.error) w.keep(w.file->append(total));
  if (!w.error) w.keep(w.file->sync());
  if (!w.error) w.keep(w.file->close());
  if (w.error) return *w.error;
  return {};
}

uint64_t TraceWriter::n_rows() const {
  return impl_->n_rows;
}
uint64_t TraceWriter::bytes_written() const {
  return impl_->file->position();
}

}  // namespace forebay
