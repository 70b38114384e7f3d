/// Any bytes as a trace: an error, or rows that hold what they promise and can be replayed. Once as they are,
/// once with checksums made right, so that mutations get past those.
#include <algorithm>
#include <set>
#include <span>
#include <string>

#include "../support/memory_storage.h"
#include "../support/synthetic_routes.h"
#include "fuzz.h"
#include "replay/simulate.h"
#include "trace/format.h"

namespace forebay {
namespace {

namespace format = trace_format;

void check_one_line(const Error& error) {
  FUZZ_ASSERT(!error.message.empty());
  FUZZ_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

template <typename T>
void overwrite(std::string& bytes, size_t at, T value) {
  std::vector<std::byte> le;
  format::put_le(le, value);
  for (size_t i = 0; i < le.size(); ++i) bytes[at + i] = static_cast<char>(le[i]);
}

/// The same bytes with every checksum that can be found made right.
std::string with_checksums(std::string bytes) {
  const auto view = [&bytes](size_t at, size_t n) { return std::as_bytes(std::span(bytes)).subspan(at, n); };
  if (bytes.size() < 32) return bytes;
  const size_t header_bytes = format::get_le<uint32_t>(view(0, bytes.size()), 12);
  if (header_bytes < 40 || header_bytes > bytes.size()) return bytes;
  overwrite(bytes, header_bytes - 8, format::checksum(view(0, header_bytes - 8)));
  for (size_t at = header_bytes; at + format::FrameHeader::kBytes <= bytes.size();) {
    const format::FrameHeader frame = format::decode_frame_header(view(at, format::FrameHeader::kBytes));
    const size_t payload = at + format::FrameHeader::kBytes;
    if (frame.payload_bytes > bytes.size() - payload) break;
    overwrite(bytes, at + 12, format::frame_checksum(frame, view(payload, frame.payload_bytes)));
    at = payload + frame.payload_bytes;
  }
  return bytes;
}

void check_row(const TraceHeader& header, const TraceRow& row) {
  FUZZ_ASSERT(row.block >= 0 && row.block < header.n_blocks() && header.expert_bytes[row.block] > 0);
  FUZZ_ASSERT(row.candidates.ids.size() == static_cast<size_t>(header.n_candidates()));
  FUZZ_ASSERT(row.candidates.gaps.size() == row.candidates.ids.size());
  FUZZ_ASSERT(row.chosen.size() == static_cast<size_t>(header.n_used));
  FUZZ_ASSERT(std::is_sorted(row.candidates.gaps.begin(), row.candidates.gaps.end()));
  for (const auto list : {row.candidates.ids, row.chosen}) {
    FUZZ_ASSERT(std::set<uint16_t>(list.begin(), list.end()).size() == list.size());
    FUZZ_ASSERT(std::all_of(list.begin(), list.end(), [&](uint16_t e) { return e < header.n_experts; }));
  }
}

/// How many rows there are, or none for an error.
std::optional<uint64_t> read_all(Storage& storage) {
  Result<TraceReader> reader = TraceReader::open(storage, "trace");
  if (!reader) {
    check_one_line(reader.error());
    return std::nullopt;
  }
  for (uint64_t n_rows = 0;; ++n_rows) {
    const Result<std::optional<TraceRow>> row = reader->next();
    if (!row) {
      check_one_line(row.error());
      return std::nullopt;
    }
    if (!*row) return n_rows;
    check_row(reader->header(), **row);
  }
}

void check(std::string bytes) {
  MemoryStorage storage;
  storage.put("trace", std::move(bytes));
  const std::optional<uint64_t> n_rows = read_all(storage);
  const Result<RouteLog> log = load_route_log(storage, "trace");
  FUZZ_ASSERT(log.has_value() == n_rows.has_value());
  if (!log) return check_one_line(log.error());
  FUZZ_ASSERT(log->n_rows() == *n_rows);
  if (int64_t{log->header.n_blocks()} * log->header.n_experts > 4096) return;  // would only be slow
  const uint64_t budget = log->largest_slot_bytes() * log->header.n_used;
  FUZZ_ASSERT(check_budget(*log, budget).has_value());
  for (const std::optional<EvictionPolicy> policy : {std::optional(EvictionPolicy::kEma), {}}) {
    const ReplayCounts counts = simulate(*log, {policy, budget, 10, {policy ? 0.5f : 0, 1, 16}}, {}).counted;
    FUZZ_ASSERT(counts.n_misses <= counts.n_uses && counts.n_cold <= counts.n_misses);
    FUZZ_ASSERT(counts.n_requests == log->requests.size());
  }
}

std::string seed(int n_experts, int n_used, int n_tokens, bool finish) {
  MemoryStorage storage;
  const testing::SyntheticShape shape{.n_blocks = 3, .n_experts = n_experts, .n_used = n_used};
  const std::unique_ptr<TraceWriter> writer =
      TraceWriter::create(storage, "t", {"m", n_experts, n_used, {70, 80, 90}, {128, 128, 128}}).value();
  testing::SyntheticRoutes routes(shape);
  routes.window(RoutePhase::kPrefill, 3, *writer);
  for (int t = 0; t < n_tokens; ++t) routes.window(RoutePhase::kDecode, 1, *writer);
  const std::vector<float> logits(n_experts, 0);
  std::vector<int32_t> last(n_used);
  for (int i = 0; i < n_used; ++i) last[i] = n_experts - 1 - i;
  writer->on_route(
      {.block = 1, .token = -7, .phase = RoutePhase::kDraft, .logits_E = logits, .chosen = last});
  FUZZ_ASSERT(writer->finish().has_value());
  std::string bytes = storage.get("t");
  if (!finish) bytes.resize(bytes.size() - 28);
  return bytes;
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  forebay::check(bytes);
  forebay::check(forebay::with_checksums(bytes));
  return 0;
}

FuzzSeeds fuzz_seeds() {
  return {{forebay::seed(8, 2, 5, true), forebay::seed(70, 10, 2, true), forebay::seed(5, 5, 3, false),
           forebay::seed(1, 1, 2, true)},
          {"ROWS", "END ", "FBYTRACE", std::string("\xff\xff\xff\xff", 4), std::string(8, '\0')}};
}
