// Sessions in files: restored is never stopped, and what is damaged does not load.
#include "session/session_file.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "core/bytes.h"
#include "core/faulty_storage.h"
#include "core/hash.h"
#include "session/pieces.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

const std::vector<std::string> kFileFacts = {"model=1", "kv=f32"};
const Path kFile = "s.session";

using testing::some_ids;

ModelOptions with_kv(KvType kv) {
  ModelOptions options;
  options.kv = kv;
  return options;
}

struct Model1 : LoadedModel {
  explicit Model1(const std::string& family, KvType kv = KvType::kF32)
      : LoadedModel(testing::converted_vectors(family), 2, best_isa(), with_kv(kv)) {}

  void run(SequenceState& state, std::span<const int32_t> tokens) {
    for (size_t first = 0; first < tokens.size(); first += 256) {
      const Span span{&state, tokens.subspan(first, std::min<size_t>(256, tokens.size() - first)),
                      LogitRows::kLast};
      const Result<ForwardOutput> out = model->forward({&span, 1});
      ASSERT_OK(out);
      last.assign(out->logits.row(0), out->logits.row(0) + out->logits.cols);
    }
  }
  /// A state of these tokens, and a file of it.
  SequenceState saved(Storage& storage, const std::vector<int32_t>& ids, const Path& path = kFile) {
    SequenceState s = state(ids.size() + 64);
    run(s, ids);
    EXPECT_OK(write_session(storage, path, {&s, nullptr, ids, last}, {.facts = kFileFacts}));
    return s;
  }

  std::vector<float> last;  // logits
};

/// Of every byte that counts.
uint64_t hash_of(const SequenceState& state) {
  uint64_t sum = kChecksumSeed + static_cast<uint64_t>(state.n_cells());
  for (const StateSection& s : state.sections()) {
    const auto n = static_cast<uint64_t>(s.n_rows(state.n_cells(), state.n_mtp_cells()));
    sum = checksum(s.bytes.first(n * s.row_bytes), sum);
  }
  return checksum(std::as_bytes(state.token_tail()), sum);
}

class SessionFiles : public ::testing::TestWithParam<std::string> {};

// Cases 5 and 14, and what they are made of: the file is the state.
TEST_P(SessionFiles, RestoredIsNeverStopped) {
  for (KvType kv : {KvType::kF32, KvType::kInt8}) {
    Model1 m(GetParam(), kv);
    const TemporaryDirectory folder;
    const auto storage = make_posix_storage();
    for (int64_t n : {1, 63, 64, 65, 257, 1000}) {
      const std::vector<int32_t> ids = some_ids(n + 9), first(ids.begin(), ids.begin() + n);
      SequenceState never_stopped = m.saved(*storage, first, folder / kFile);
      const std::vector<float> at_n = m.last;
      SessionReader reader = SessionReader::open(*storage, folder / kFile).value();
      SequenceState restored = m.state(n + 64);
      std::vector<float> logits;
      ASSERT_OK(reader.load(restored, kFileFacts, logits));
      EXPECT_EQ(logits, at_n);
      EXPECT_EQ(hash_of(restored), hash_of(never_stopped)) << n;
      m.run(never_stopped, std::span(ids).subspan(n));
      const std::vector<float> want = m.last;
      m.run(restored, std::span(ids).subspan(n));
      EXPECT_EQ(std::memcmp(m.last.data(), want.data(), want.size() * sizeof(float)), 0) << n;
      EXPECT_EQ(hash_of(restored), hash_of(never_stopped)) << n;
    }
  }
}

/// A child has the rows after its parent's, whatever the alignment of both.
TEST_P(SessionFiles, AChildAndItsParentAreTheWhole) {
  Model1 m(GetParam());
  const Path folder = "cache";
  MemoryStorage memory;
  MemoryStorage* const storage = &memory;
  const std::vector<int32_t> ids = some_ids(150);
  for (int64_t n_parent : {3, 4, 61, 64, 66}) {
    const std::vector<int32_t> prefix(ids.begin(), ids.begin() + n_parent);
    m.saved(*storage, prefix, folder / "parent");
    const SessionParent parent{"parent", read_session_header(*storage, folder / "parent").value()};
    for (int64_t n : {n_parent, n_parent + 1, n_parent + 2, n_parent + 3, n_parent + 64, int64_t{150}}) {
      SequenceState state = m.state(256);
      const std::vector<int32_t> mine(ids.begin(), ids.begin() + n);
      m.run(state, mine);
      const Result<SessionHeader> child = write_session(
          *storage, folder / "child", {&state, nullptr, mine, {}}, {.facts = kFileFacts, .parent = parent});
      ASSERT_OK(child);
      for (const SessionSection& s : child->sections)
        EXPECT_TRUE(s.first_row == 0 || s.first_row == static_cast<uint64_t>(n_parent / 4 * 4) ||
                    s.first_row == static_cast<uint64_t>(n_parent / 4))
            << s.name << " begins at row " << s.first_row;
      std::vector<float> logits;
      for (bool whole : {false, true}) {
        SessionReader reader = SessionReader::open(*storage, folder / (whole ? "whole" : "child")).value();
        ASSERT_OK(reader.check_payload());
        SequenceState restored = m.state(256);
        ASSERT_OK(reader.load(restored, kFileFacts, logits));
        EXPECT_EQ(hash_of(restored), hash_of(state)) << n_parent << " of " << n;
        if (!whole) {
          ASSERT_OK(reader.write_whole(*storage, folder / "whole"));
        }
      }
    }
  }
}

TEST_P(SessionFiles, ASnapshotIsSavedWhileTheStateGoesOn) {
  Model1 m(GetParam());
  MemoryStorage storage;
  const std::vector<int32_t> ids = some_ids(120);
  SequenceState state = m.state(256);
  m.run(state, std::span(ids).first(70));
  const auto snapshot = std::make_shared<const Snapshot>(state.snapshot());
  const uint64_t want = hash_of(state);
  m.run(state, std::span(ids).subspan(70));
  ASSERT_OK(
      write_session(storage, kFile, {&state, snapshot, std::span(ids).first(70), {}}, {.facts = kFileFacts}));
  SessionReader reader = SessionReader::open(storage, kFile).value();
  std::vector<float> logits;
  ASSERT_OK(reader.load(state, kFileFacts, logits));
  EXPECT_EQ(hash_of(state), want);
  EXPECT_TRUE(logits.empty());
}

/// Where a later prompt may part from the saved one.
TEST_P(SessionFiles, PlacesComeAlong) {
  Model1 m(GetParam());
  MemoryStorage storage;
  const std::vector<int32_t> ids = some_ids(120), other = some_ids(20, 5);
  SequenceState state = m.state(256);
  if (!state.is_recurrent()) GTEST_SKIP() << "every cell is a place";
  std::vector<std::shared_ptr<const Snapshot>> places;
  std::vector<uint64_t> hashes;
  for (int64_t first : {0, 1, 70}) {
    m.run(state, std::span(ids).subspan(first, first == 0 ? 1 : first == 1 ? 69 : 50));
    if (state.n_cells() == 120) break;
    places.push_back(std::make_shared<const Snapshot>(state.snapshot()));
    hashes.push_back(hash_of(state));
  }
  ASSERT_OK(write_session(storage, kFile, {&state, nullptr, ids, {}, places}, {.facts = kFileFacts}));
  ASSERT_OK(SessionReader::open(storage, kFile).value().write_whole(storage, "whole"));
  ASSERT_OK(SessionReader::open(storage, kFile).value().write_branch(storage, "branch"));
  for (const Path& path : {kFile, Path("whole"), Path("branch")}) {
    SessionReader reader = SessionReader::open(storage, path).value();
    ASSERT_OK(reader.check_payload());
    SequenceState restored = m.state(256);
    std::vector<float> logits;
    std::vector<Snapshot> found;
    ASSERT_OK(reader.load(restored, kFileFacts, logits, 2, &found));
    EXPECT_EQ(hash_of(restored), hash_of(state));
    ASSERT_EQ(found.size(), 2u);
    for (size_t i : {1, 0}) {
      ASSERT_OK(restored.restore(found[i]));
      EXPECT_EQ(hash_of(restored), hashes[i]) << path;
    }
    // From the later one, with other tokens.
    ASSERT_OK(reader.load(restored, kFileFacts, logits, 2, &found));
    ASSERT_OK(restored.restore(found[1]));
    m.run(restored, other);
    SequenceState fresh = m.state(256);
    m.run(fresh, std::span(ids).first(70));
    m.run(fresh, other);
    EXPECT_EQ(hash_of(restored), hash_of(fresh));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SessionFiles, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

/// A session of the family with the most kinds of state, in memory, and ways to damage it.
class DamagedSessions : public ::testing::Test {
 protected:
  DamagedSessions()
      : model_("qwen4exp"), state_(model_.saved(storage_, some_ids(70))), live_(model_.state(128)) {
    model_.run(live_, some_ids(10, 1));
    live_hash_ = hash_of(live_);
  }

  Result<void> load() {
    Result<SessionReader> reader = SessionReader::open(storage_, kFile);
    if (!reader) return std::move(reader).error();
    std::vector<float> logits;
    return reader->load(live_, kFileFacts, logits, 1);
  }
  /// Refused before the live state changed.
  ::testing::AssertionResult is_refused(Code code, std::string_view part) {
    const ::testing::AssertionResult refused = fails_with(load(), code, part);
    if (refused && hash_of(live_) != live_hash_) return ::testing::AssertionFailure() << "the state changed";
    return refused;
  }
  /// The same file with another list of sections, checksums right.
  void rewrite(const std::function<void(SessionHeader&)>& change) {
    const std::string bytes = storage_.get(kFile);
    SessionHeader h = read_session_header(storage_, kFile).value();
    const SessionHeader before = h;
    change(h);
    place_sections(h);
    std::string payload;
    for (SessionSection& s : h.sections) {
      const SessionSection* old = before.find(s.name);
      std::string section =
          old == nullptr ? std::string(s.bytes(), 'x') : bytes.substr(old->offset, s.bytes());
      PieceSums sums(section.size());
      for (size_t p = 0; p < sums.n_pieces(); ++p)
        sums.set(p,
                 fast_checksum(std::as_bytes(std::span(section))
                                   .subspan(p * kPieceBytes)
                                   .first(std::min<size_t>(kPieceBytes, section.size() - p * kPieceBytes))));
      s.checksum = sums.total();
      section.resize((section.size() + 4095) / 4096 * 4096);
      payload += section;
    }
    const std::vector<std::byte> header = encode(h);
    storage_.put(kFile, std::string(reinterpret_cast<const char*>(header.data()), header.size()) + payload);
  }

  MemoryStorage storage_;
  Model1 model_;
  SequenceState state_, live_;
  uint64_t live_hash_ = 0;
};

TEST_F(DamagedSessions, EveryFlippedByteOfTheHeaderIsAMiss) {
  const std::string good = storage_.get(kFile);
  const size_t n_header = read_session_header(storage_, kFile).value().sections[0].offset;
  for (size_t at = 0; at < n_header; ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    storage_.put(kFile, std::move(bytes));
    ASSERT_FALSE(load().has_value()) << at;
  }
  EXPECT_EQ(hash_of(live_), live_hash_);
}

TEST_F(DamagedSessions, EveryComponentOneRowShortIsAMiss) {
  const SessionHeader good = read_session_header(storage_, kFile).value();
  const std::string bytes = storage_.get(kFile);
  for (size_t i = 0; i < good.sections.size(); ++i) {
    if (good.sections[i].name == kLogitsSection) continue;
    rewrite([&](SessionHeader& h) {
      if (h.sections[i].n_rows > 1)
        --h.sections[i].n_rows;
      else
        h.sections[i].row_bytes -= 4;
    });
    EXPECT_TRUE(is_refused(good.sections[i].n_rows > 1 ? Code::kCorrupt : Code::kInvalidArgument,
                           "'" + good.sections[i].name + "'"));
    storage_.put(kFile, bytes);
    rewrite([&](SessionHeader& h) { h.sections.erase(h.sections.begin() + static_cast<ptrdiff_t>(i)); });
    EXPECT_TRUE(is_refused(Code::kInvalidArgument, "'" + good.sections[i].name + "' is missing"));
    storage_.put(kFile, bytes);
  }
  rewrite([](SessionHeader& h) { h.sections.push_back({.name = "more", .row_bytes = 8, .n_rows = 1}); });
  EXPECT_TRUE(is_refused(Code::kInvalidArgument, "'more' is none of this model's"));
  // Token ids, of which the n-gram tail is made.
  storage_.put(kFile, bytes);
  rewrite([](SessionHeader& h) { h.tokens.pop_back(); });
  EXPECT_FALSE(load().has_value());
  EXPECT_EQ(hash_of(live_), live_hash_);
  storage_.put(kFile, bytes);
  EXPECT_OK(load());
  EXPECT_EQ(hash_of(live_), hash_of(state_));
}

TEST_F(DamagedSessions, PlacesThatCannotBeAreMisses) {
  const uint64_t bytes = state_.fixed_bytes();
  const std::string good = storage_.get(kFile);
  const auto refused = [&](const char* name, uint64_t row_bytes, std::string_view part) {
    storage_.put(kFile, good);
    rewrite(
        [&](SessionHeader& h) { h.sections.push_back({.name = name, .row_bytes = row_bytes, .n_rows = 1}); });
    EXPECT_TRUE(is_refused(Code::kInvalidArgument, part)) << name;
  };
  refused("place.40.0", bytes - 4, "'place.40.0'");
  refused("place.71.0", bytes, "of 71 cells");
  refused("place.0.0", bytes, "of 0 cells");
  refused("place.40.1", bytes, "'place.40.1'");
  refused("place.40", bytes, "none of this model's");
  refused("place.-4.0", bytes, "none of this model's");
  storage_.put(kFile, good);
  rewrite([&](SessionHeader& h) {
    h.sections.push_back({.name = "place.40.0", .row_bytes = bytes, .n_rows = 1});
  });
  EXPECT_OK(load());
}

TEST_F(DamagedSessions, OtherFactsAreNamed) {
  rewrite([](SessionHeader& h) { h.facts[1] = "kv=int8"; });
  EXPECT_TRUE(is_refused(Code::kInvalidArgument, "kv: saved with int8, this run has f32"));
  rewrite([](SessionHeader& h) { h.facts = {"model=1", "kv=f32", "route-bias=2"}; });
  EXPECT_TRUE(is_refused(Code::kInvalidArgument, "route-bias: saved with 2, this run has nothing"));
  rewrite([](SessionHeader& h) { h.facts = {"kv=f32"}; });
  EXPECT_TRUE(is_refused(Code::kInvalidArgument, "model: saved with nothing, this run has 1"));
}

TEST_F(DamagedSessions, EveryDamagedSectionResets) {
  const SessionHeader h = read_session_header(storage_, kFile).value();
  const std::string good = storage_.get(kFile);
  for (const SessionSection& s : h.sections) {
    std::string bytes = good;
    bytes[s.offset + s.bytes() / 2] = static_cast<char>(bytes[s.offset + s.bytes() / 2] ^ 16);
    storage_.put(kFile, bytes);
    EXPECT_TRUE(fails_with(load(), Code::kCorrupt, "'" + s.name + "'", "checksum"));
    EXPECT_EQ(live_.n_cells(), 0);
    EXPECT_EQ(hash_of(live_), hash_of(model_.state(16)));
    model_.run(live_, some_ids(10, 1));
    EXPECT_EQ(hash_of(live_), live_hash_) << "as if nothing had been loaded";
  }
}

TEST_F(DamagedSessions, FilesCutShortAreRefused) {
  const std::string good = storage_.get(kFile);
  for (size_t n : {good.size() - 1, good.size() - 4096, good.size() / 2, size_t{8192}, size_t{4096},
                   size_t{100}, size_t{0}}) {
    storage_.put(kFile, good.substr(0, n));
    EXPECT_TRUE(is_refused(Code::kCorrupt, "s.session")) << n;
  }
  storage_.put(kFile, good + "x");
  EXPECT_TRUE(is_refused(Code::kCorrupt, "its header says"));
}

TEST_F(DamagedSessions, AParentThatIsGoneOrAnotherIsAMiss) {
  const SessionParent parent{"s.session", read_session_header(storage_, kFile).value()};
  SequenceState longer = model_.state(256);
  const std::vector<int32_t> ids = some_ids(90);
  model_.run(longer, ids);
  ASSERT_OK(
      write_session(storage_, "child", {&longer, nullptr, ids, {}}, {.facts = kFileFacts, .parent = parent}));
  const auto open = [&] { return SessionReader::open(storage_, "child"); };
  ASSERT_OK(open());
  const std::string good = storage_.get(kFile);
  ASSERT_OK(storage_.remove(kFile));
  EXPECT_TRUE(fails_with(open(), Code::kNotFound, "child: its parent s.session is gone"));
  storage_.put(kFile, good.substr(0, good.size() / 2));
  EXPECT_TRUE(fails_with(open(), Code::kNotFound, "its parent s.session is not usable"));
  storage_.put(kFile, good);
  rewrite([](SessionHeader& h) { h.facts[0] = "model=2"; });
  EXPECT_TRUE(fails_with(open(), Code::kNotFound, "its parent s.session is another file than it was"));
}

TEST_F(DamagedSessions, WritesThatFailLeaveNothing) {
  for (StorageOp op :
       {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename})
    for (int n = 1;; ++n) {
      MemoryStorage below;
      FaultyStorage faulty(below, {.op = op, .fail_at = n, .keep_failing = true, .reason = "no space left"});
      const std::vector<int32_t> ids = some_ids(70);
      const auto written =
          write_session(faulty, kFile, {&state_, nullptr, ids, {}}, {.facts = kFileFacts, .n_threads = 1});
      if (faulty.n_faults() == 0) {
        EXPECT_OK(written);
        break;
      }
      EXPECT_TRUE(fails_with(written, Code::kIo, "no space left"));
      EXPECT_EQ(below.n_files(), 0u);
    }
}

TEST_F(DamagedSessions, ReadsThatFailReset) {
  for (int n = 1;; ++n) {
    FaultyStorage faulty(storage_, {.op = StorageOp::kRead, .fail_at = n});
    Result<SessionReader> reader = SessionReader::open(faulty, kFile);
    std::vector<float> logits;
    const Result<void> loaded =
        reader ? reader->load(live_, kFileFacts, logits, 1) : Result<void>(reader.error());
    if (faulty.n_faults() == 0) {
      EXPECT_OK(loaded);
      EXPECT_EQ(hash_of(live_), hash_of(state_));
      break;
    }
    EXPECT_TRUE(fails_with(loaded, Code::kIo, "injected fault"));
    EXPECT_EQ(live_.n_cells(), reader ? 0 : 10);
  }
}

}  // namespace
}  // namespace forebay
