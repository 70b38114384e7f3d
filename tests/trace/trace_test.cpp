// What was written is what is read; what was cut or damaged is told apart from what is whole.
#include "trace/trace.h"

#include <random>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "support/synthetic_routes.h"

namespace forebay {
namespace {

using testing::SyntheticRoutes;
using testing::SyntheticShape;

/// A row as a test keeps it.
struct Row {
  bool starts_request;
  RoutePhase phase;
  int32_t block, token, top;
  uint16_t log_sum;
  std::vector<uint16_t> ids, gaps, chosen;

  bool operator==(const Row&) const = default;
};

/// Keeps what a trace should hold: the rows, rounded as the ranker does.
class Recorder : public RouteObserver {
 public:
  explicit Recorder(int n_experts) : ranker_(n_experts) {}
  void on_route(const RouteEvent& event) override {
    const RouteCandidates c = ranker_.rank(event.logits_E);
    const bool starts = rows.empty() || event.phase == RoutePhase::kDraft ||
                        rows.back().block != event.block || rows.back().phase != event.phase;
    rows.push_back({starts,
                    event.phase,
                    event.block,
                    event.token,
                    c.top,
                    c.log_sum,
                    {c.ids.begin(), c.ids.end()},
                    {c.gaps.begin(), c.gaps.end()},
                    {event.chosen.begin(), event.chosen.end()}});
  }
  std::vector<Row> rows;

 private:
  RouteRanker ranker_;
};

class Both : public RouteObserver {
 public:
  Both(RouteObserver& a, RouteObserver& b) : a_(a), b_(b) {}
  void on_route(const RouteEvent& event) override {
    a_.on_route(event);
    b_.on_route(event);
  }

 private:
  RouteObserver &a_, &b_;
};

TraceHeader header_of(const SyntheticShape& shape) {
  TraceHeader header{"test model", shape.n_experts, shape.n_used, {}, {}};
  for (int b = 0; b < shape.n_blocks; ++b) {
    header.expert_bytes.push_back(1000 + b);
    header.slot_bytes.push_back(4096);
  }
  return header;
}

/// A prompt, tokens one by one, drafts and a window of two.
void play(SyntheticRoutes& routes, RouteObserver& observer, int n_tokens) {
  routes.window(RoutePhase::kPrefill, 20, observer);
  for (int t = 0; t < n_tokens; ++t) {
    routes.window(RoutePhase::kDecode, t % 5 == 4 ? 2 : 1, observer);
    if (t % 7 == 0) observer.on_route(routes.row_of(0, t, RoutePhase::kDraft));
  }
}

struct Read {
  TraceHeader header;
  std::vector<Row> rows;
  bool complete = false;
};

Result<Read> read_all(Storage& storage, const Path& path) {
  TraceReader reader = TRY(TraceReader::open(storage, path));
  Read read{reader.header(), {}, false};
  while (true) {
    const std::optional<TraceRow> row = TRY(reader.next());
    if (!row) break;
    read.rows.push_back({row->starts_request,
                         row->phase,
                         row->block,
                         row->token,
                         row->candidates.top,
                         row->candidates.log_sum,
                         {row->candidates.ids.begin(), row->candidates.ids.end()},
                         {row->candidates.gaps.begin(), row->candidates.gaps.end()},
                         {row->chosen.begin(), row->chosen.end()}});
  }
  read.complete = reader.complete();
  return read;
}

std::vector<Row> write(Storage& storage, const Path& path, const SyntheticShape& shape, int n_tokens) {
  SyntheticRoutes routes(shape);
  Recorder recorder(shape.n_experts);
  std::unique_ptr<TraceWriter> writer = TraceWriter::create(storage, path, header_of(shape)).value();
  Both both(*writer, recorder);
  play(routes, both, n_tokens);
  EXPECT_OK(writer->finish());
  EXPECT_EQ(writer->n_rows(), recorder.rows.size());
  return recorder.rows;
}

TEST(Trace, RoundTrip) {
  SyntheticShape small, wide, one;
  small.n_experts = 7;
  small.n_used = 7;
  wide.n_experts = 512;
  wide.n_used = 10;
  one.n_experts = 1;
  one.n_used = 1;
  for (const SyntheticShape& shape : {SyntheticShape{}, small, wide, one}) {
    MemoryStorage storage;
    const std::vector<Row> rows = write(storage, "t", shape, 60);
    const Result<Read> read = read_all(storage, "t");
    ASSERT_OK(read);
    EXPECT_TRUE(read->complete);
    EXPECT_EQ(read->header.model, "test model");
    EXPECT_EQ(read->header.n_experts, shape.n_experts);
    EXPECT_EQ(read->header.n_used, shape.n_used);
    EXPECT_EQ(read->header.expert_bytes, header_of(shape).expert_bytes);
    EXPECT_EQ(read->header.slot_bytes, header_of(shape).slot_bytes);
    ASSERT_EQ(read->rows.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_TRUE(read->rows[i] == rows[i]) << "row " << i;
  }
}

TEST(Trace, KeepsChoicesThatAreNotTheFirstRanks) {
  SyntheticShape shape;
  MemoryStorage storage;
  const auto writer = TraceWriter::create(storage, "t", header_of(shape)).value();
  std::vector<float> logits(shape.n_experts);
  for (int e = 0; e < shape.n_experts; ++e) logits[e] = static_cast<float>(-e);
  const std::vector<int32_t> chosen{0, 1, 5, 9};
  writer->on_route(
      {.block = 3, .token = -1, .phase = RoutePhase::kDecode, .logits_E = logits, .chosen = chosen});
  ASSERT_OK(writer->finish());
  const Result<Read> read = read_all(storage, "t");
  ASSERT_OK(read);
  ASSERT_EQ(read->rows.size(), 1u);
  EXPECT_EQ(read->rows[0].chosen, (std::vector<uint16_t>{0, 1, 5, 9}));
  EXPECT_EQ(read->rows[0].token, -1);
  EXPECT_EQ(read->rows[0].block, 3);
}

TEST(Trace, LogitsOfAnySizeSurvive) {
  const float inf = std::numeric_limits<float>::infinity();
  SyntheticShape shape;
  shape.n_experts = 5;
  shape.n_used = 2;
  MemoryStorage storage;
  Recorder recorder(5);
  const auto writer = TraceWriter::create(storage, "t", header_of(shape)).value();
  const std::vector<int32_t> chosen{1, 2};
  for (const std::vector<float>& logits :
       {std::vector<float>{0, 1e30f, inf, -inf, std::nanf("")}, {0, 0, 0, 0, 0}, {-90, -10, -9, -400, 3}}) {
    const RouteEvent event{.logits_E = logits, .chosen = chosen};
    writer->on_route(event);
    recorder.on_route(event);
  }
  ASSERT_OK(writer->finish());
  const Result<Read> read = read_all(storage, "t");
  ASSERT_OK(read);
  EXPECT_TRUE(read->rows == recorder.rows);
}

/// Several frames: rows are 512 experts wide.
SyntheticShape several_frames() {
  SyntheticShape shape;
  shape.n_blocks = 8;
  shape.n_experts = 512;
  shape.n_used = 10;
  return shape;
}

TEST(Trace, ACutFileIsReadUpToItsLastWholeFrame) {
  MemoryStorage storage;
  const std::vector<Row> rows = write(storage, "t", several_frames(), 600);
  const std::string bytes = storage.get("t");
  ASSERT_GT(bytes.size(), 2 * (256u << 10)) << "several frames";
  size_t longest = 0, shortest = rows.size();
  for (size_t cut : {bytes.size() - 1, bytes.size() - 28, bytes.size() - 29, bytes.size() - 100'000,
                     bytes.size() / 2, bytes.size() / 8, size_t{200}}) {
    storage.put("cut", bytes.substr(0, cut));
    const Result<Read> read = read_all(storage, "cut");
    ASSERT_OK(read);
    EXPECT_FALSE(read->complete) << cut;
    ASSERT_LE(read->rows.size(), rows.size());
    for (size_t i = 0; i < read->rows.size(); ++i) ASSERT_TRUE(read->rows[i] == rows[i]) << "row " << i;
    longest = std::max(longest, read->rows.size());
    shortest = std::min(shortest, read->rows.size());
  }
  EXPECT_EQ(longest, rows.size()) << "only the end mark was cut";
  EXPECT_EQ(shortest, 0u);
}

TEST(Trace, AWriterThatNeverFinishedLeavesWholeFrames) {
  MemoryStorage storage;
  const SyntheticShape shape = several_frames();
  SyntheticRoutes routes(shape);
  {
    const auto writer = TraceWriter::create(storage, "t", header_of(shape)).value();
    play(routes, *writer, 600);
  }
  const Result<Read> read = read_all(storage, "t");
  ASSERT_OK(read);
  EXPECT_FALSE(read->complete);
  EXPECT_GT(read->rows.size(), 1000u);
}

TEST(Trace, DamageIsFoundWhereverItIs) {
  MemoryStorage storage;
  write(storage, "t", several_frames(), 900);
  const std::string bytes = storage.get("t");
  std::mt19937_64 random(4);
  int n_errors = 0;
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    // The last frame and the end mark apart: a fault there reads as a cut.
    const size_t at = i < 20 ? i : random() % (bytes.size() - 600'000);
    damaged[at] ^= static_cast<char>(1 << (random() % 8));
    storage.put("damaged", damaged);
    const Result<Read> read = read_all(storage, "damaged");
    EXPECT_FALSE(read.has_value()) << "byte " << at;
    if (!read) {
      EXPECT_TRUE(read.error().code == Code::kCorrupt || read.error().code == Code::kUnsupported);
      EXPECT_EQ(read.error().message.find("damaged: "), 0u) << read.error().message;
      ++n_errors;
    }
  }
  EXPECT_EQ(n_errors, 60);
}

TEST(Trace, OtherFilesAndVersionsAreRefusedByName) {
  MemoryStorage storage;
  storage.put("x", "GGUF and so on, longer than a header is");
  EXPECT_TRUE(fails_with(read_all(storage, "x"), Code::kCorrupt, "x: not a trace"));
  storage.put("empty", "");
  EXPECT_TRUE(fails_with(read_all(storage, "empty"), Code::kCorrupt, "empty: not a trace"));
  write(storage, "t", {}, 1);
  std::string bytes = storage.get("t");
  bytes[8] = 2;
  storage.put("t", bytes);
  EXPECT_TRUE(fails_with(read_all(storage, "t"), Code::kUnsupported, "t: version 2, this program reads 1"));
}

TEST(Trace, HeadersThatNoReaderTakesAreRefused) {
  MemoryStorage storage;
  const auto refused = [&](const TraceHeader& header, std::string_view part) {
    return fails_with(TraceWriter::create(storage, "t", header), Code::kInvalidArgument, part);
  };
  const TraceHeader good = header_of({});
  TraceHeader bad = good;
  bad.n_used = 33;
  EXPECT_TRUE(refused(bad, "33 experts per token, expected 1 to 32"));
  bad = good;
  bad.n_experts = 70'000;
  EXPECT_TRUE(refused(bad, "70000 experts"));
  bad = good;
  bad.slot_bytes.pop_back();
  EXPECT_TRUE(refused(bad, "3 blocks' slots for 4 blocks"));
  bad = good;
  bad.slot_bytes[2] = 5;
  EXPECT_TRUE(refused(bad, "block 2: slots of 5 bytes for experts of 1002"));
  bad = good;
  bad.expert_bytes[1] = 0;
  EXPECT_TRUE(refused(bad, "block 1: slots of 4096 bytes for experts of 0"));
  bad = good;
  bad.expert_bytes.assign(4, 0);
  bad.slot_bytes.assign(4, 0);
  EXPECT_TRUE(refused(bad, "no block has experts"));
  bad = good;
  bad.n_experts = 1 << 16;
  bad.expert_bytes.assign(17, 1);
  bad.slot_bytes.assign(17, 1);
  EXPECT_TRUE(refused(bad, "17 blocks of 65536 experts"));
  bad = good;
  bad.expert_bytes.clear();
  EXPECT_TRUE(refused(bad, "0 blocks"));
}

TEST(Trace, AFailedWriteIsFinishsErrorAndLeavesAReadableFile) {
  const SyntheticShape shape = several_frames();
  for (const StorageOp op : {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose}) {
    for (int fail_at = 1;; ++fail_at) {
      MemoryStorage memory;
      FaultyStorage storage(memory, {.op = op, .fail_at = fail_at});
      SyntheticRoutes routes(shape);
      Result<std::unique_ptr<TraceWriter>> writer = TraceWriter::create(storage, "t", header_of(shape));
      if (writer) {
        play(routes, **writer, 250);
        const bool failed = !(*writer)->finish().has_value();
        EXPECT_EQ(failed, storage.n_faults() > 0);
        EXPECT_OK(read_all(memory, "t"));
      }
      if (storage.n_faults() == 0) break;
    }
  }
}

TEST(Trace, TakesAFractionOfThePlainNumbers) {
  MemoryStorage storage;
  const std::vector<Row> rows = write(storage, "t", several_frames(), 300);
  const double per_row = static_cast<double>(storage.get("t").size()) / static_cast<double>(rows.size());
  RecordProperty("bytes_per_row", std::to_string(per_row));
  EXPECT_LT(per_row, 64 * 2.2) << "64 ids and logits";
}

}  // namespace
}  // namespace forebay
