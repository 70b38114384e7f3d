// A sequence's memory: that its list of sections is all of it, and that cutting back a window gives the bits
// of never having run the tokens that were dropped.
#include <algorithm>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "core/bytes.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::ids_of;

using testing::LoadedModel;

void run(LoadedModel& m, SequenceState& state, std::span<const int32_t> tokens) {
  const Span span{&state, tokens, LogitRows::kNone};
  ASSERT_OK(m.model->forward({&span, 1}));
}

/// Of every byte that counts: rows past the end do not.
uint64_t hash_of(const SequenceState& state) {
  uint64_t sum = kChecksumSeed + static_cast<uint64_t>(state.n_cells());
  for (const StateSection& s : state.sections()) {
    const auto n = static_cast<uint64_t>(s.n_rows(state.n_cells(), state.n_mtp_cells()));
    sum = checksum(s.bytes.first(n * s.row_bytes), sum);
  }
  return checksum(std::as_bytes(state.token_tail()), sum);
}

class States : public ::testing::TestWithParam<std::string> {};

TEST_P(States, SectionsAreAllOfTheMemoryOnceEach) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const uint64_t before = m.budget.used_bytes();
  SequenceState state = m.state(64);
  uint64_t bytes = 0;
  std::set<std::string> names;
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
  for (const StateSection& s : state.sections()) {
    bytes += s.bytes.size();
    EXPECT_TRUE(names.insert(s.name).second) << s.name;
    ranges.emplace_back(s.bytes.data(), s.bytes.data() + s.bytes.size());
  }
  EXPECT_EQ(bytes + state.derived_bytes(), m.budget.used_bytes() - before);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
}

void expect_all_in_sections(const std::string& family, KvType kv) {
  ModelOptions options;
  options.kv = kv;
  LoadedModel m(testing::converted_vectors(family), 2, best_isa(), options);
  SequenceState state = m.state(64);
  const auto listed = [&](auto piece) {
    const auto bytes = std::as_bytes(std::span(piece));
    return bytes.empty() || std::any_of(state.sections().begin(), state.sections().end(), [&](const auto& s) {
             return s.bytes.data() == bytes.data() && s.bytes.size() == bytes.size();
           });
  };
  size_t n_pieces = 0;
  const auto expect = [&](auto piece, const char* what, int block) {
    n_pieces += !piece.empty();
    EXPECT_TRUE(listed(piece)) << what << " of block " << block;
  };
  const auto expect_attention = [&](const AttentionState& a, int block) {
    for (const KvRows* rows : {&a.keys, &a.values}) {
      if (rows->empty()) continue;
      expect(rows->value_bytes_of(0, 64), "K/V", block);
      expect(rows->scales_of(0, 64), "scales", block);
    }
    expect(a.pooled, "pooled", block);
    expect(a.raw, "raw", block);
    // A field that the lines above do not know.
    EXPECT_EQ(sizeof(AttentionState),
              2 * 32 + 2 * sizeof(std::span<float>) + sizeof(BlockCodes) + sizeof(a.n_coded));
  };
  for (int b = 0; b < m.model->config().n_blocks; ++b) {
    expect_attention(state.attention(b), b);
    const GatedDeltaState& g = state.gated_delta(b);
    expect(g.matrix, "matrix", b);
    expect(g.conv, "conv", b);
    EXPECT_EQ(sizeof(GatedDeltaState), 2 * sizeof(std::span<float>));
  }
  expect_attention(state.mtp(), -1);
  expect(state.ngram_conv(), "n-gram tail", -1);
  EXPECT_EQ(n_pieces, state.sections().size());
}

/// Every piece that layers write lies in a section: a new tensor outside the list would not be saved.
TEST_P(States, WhatLayersSeeIsInASection) {
  for (const KvType kv : {KvType::kF32, KvType::kInt8}) expect_all_in_sections(GetParam(), kv);
}

/// After n tokens in windows of one: the hash for every n.
std::vector<uint64_t> hashes_of(LoadedModel& m, const std::vector<int32_t>& ids, int64_t n) {
  SequenceState state = m.state(128);
  std::vector<uint64_t> hashes{hash_of(state)};
  for (int64_t i = 0; i < n; ++i) {
    run(m, state, std::span(ids).subspan(i, 1));
    hashes.push_back(hash_of(state));
  }
  return hashes;
}

TEST_P(States, KeepingJOfTTokensIsHavingRunJ) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const std::vector<int32_t> ids = ids_of(GetParam());
  constexpr int64_t kStarts = 70;  // every cell modulo 4 and modulo 64
  const std::vector<uint64_t> want = hashes_of(m, ids, kStarts + 8);
  SequenceState state = m.state(128);
  // What is dropped would not have come: other tokens than those that the reference ran.
  std::vector<int32_t> window(8);
  for (int64_t first = 0; first < kStarts; ++first) {
    const Snapshot at_first = state.snapshot();
    for (int64_t j = 0; j <= 8; ++j) {
      // All T at every start would take long: each (j, T) comes up at each start modulo 4.
      const int64_t T = std::max(j, 1 + (first / 4 + j) % 8);
      for (int64_t i = 0; i < T; ++i) window[i] = i < j ? ids[first + i] : 511 - ids[first + i];
      ASSERT_OK(m.model->arm_undo(state));
      run(m, state, std::span(window).first(T));
      ASSERT_OK(m.model->keep(state, j));
      ASSERT_EQ(hash_of(state), want[first + j]) << "from cell " << first << ", " << j << " of " << T;
      ASSERT_OK(state.restore(at_first));
    }
    run(m, state, std::span(ids).subspan(first, 1));
  }
}

TEST_P(States, WhatCannotBeKeptIsRefused) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const std::vector<int32_t> ids = ids_of(GetParam());
  SequenceState state = m.state(64);
  EXPECT_TRUE(fails_with(m.model->keep(state, 0), Code::kInvalidArgument, "keep 0 tokens", "has 0"));
  ASSERT_OK(m.model->arm_undo(state));
  const Span nine{&state, std::span(ids).first(9), LogitRows::kNone};
  EXPECT_TRUE(fails_with(m.model->forward({&nine, 1}), Code::kInvalidArgument, "9 tokens", "at most 8"));
  run(m, state, std::span(ids).first(4));
  EXPECT_TRUE(fails_with(m.model->keep(state, 5), Code::kInvalidArgument, "keep 5 tokens", "has 4"));
  ASSERT_OK(m.model->keep(state, 3));
  EXPECT_EQ(state.n_cells(), 3);
  EXPECT_FALSE(m.model->keep(state, 3).has_value());
  // A window that was not armed cannot be cut, even after one that was.
  ASSERT_OK(m.model->arm_undo(state));
  run(m, state, std::span(ids).subspan(3, 2));
  run(m, state, std::span(ids).subspan(5, 2));
  EXPECT_FALSE(m.model->keep(state, 1).has_value());
}

TEST_P(States, RewindsWhereNothingIsRecurrent) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const std::vector<int32_t> ids = ids_of(GetParam());
  const std::vector<uint64_t> want = hashes_of(m, ids, 20);
  SequenceState state = m.state(128);
  run(m, state, std::span(ids).first(40));
  EXPECT_FALSE(state.rewind(41).has_value());
  EXPECT_OK(state.rewind(40));
  const bool recurrent = m.model->config().has_mixer(MixerKind::kGatedDelta);
  ASSERT_EQ(state.can_rewind(13), !recurrent);
  if (recurrent) {
    EXPECT_TRUE(fails_with(state.rewind(13), Code::kInvalidArgument, "rewind to cell 13"));
    EXPECT_EQ(state.n_cells(), 40);
    return;
  }
  ASSERT_OK(state.rewind(13));
  EXPECT_EQ(hash_of(state), want[13]);
  run(m, state, std::span(ids).subspan(13, 7));
  EXPECT_EQ(hash_of(state), want[20]);
}

TEST_P(States, SnapshotRunRestoreRunFiveTimes) {
  LoadedModel m(testing::converted_vectors(GetParam()));
  const std::vector<int32_t> ids = ids_of(GetParam());
  SequenceState state = m.state(128);
  run(m, state, std::span(ids).first(65));
  const Snapshot snapshot = state.snapshot();
  std::set<uint64_t> hashes;
  for (int again = 0; again < 5; ++again) {
    run(m, state, std::span(ids).subspan(65, 30));
    hashes.insert(hash_of(state));
    ASSERT_OK(state.restore(snapshot));
  }
  EXPECT_EQ(hashes.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Families, States, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace forebay
