// Edits in the middle of a sequence: what must be exact is, to the bit.
#include "reuse/edit.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "joined.h"
#include "model/relocate.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

Tokens some(int n, int seed) {
  Tokens out;
  for (int i = 0; i < n; ++i) out.push_back((i * 37 + i * i * seed + 11 * seed) % 500);
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

/// A model and a sequence A B C with a snapshot after A.
struct Sequence {
  Sequence(LoadedModel& m, const Tokens& a, const Tokens& b, const Tokens& c)
      : m(m),
        a(a),
        b(b),
        c(c),
        state(m.state(512)),
        log(m.model->config(), RecurrenceLog::Keep::kEverything) {
    feed(a);
    start = state.snapshot();
    feed(b);
    after_removed = state.snapshot();
    feed(c);
  }

  std::vector<float> feed(const Tokens& tokens) {
    if (tokens.empty()) return {};
    Span span{&state, tokens, LogitRows::kAll};
    span.recurrence = &log;
    const Result<ForwardOutput> out = m.model->forward({&span, 1});
    EXPECT_OK(out);
    return {out->logits.data, out->logits.data + out->logits.rows * out->logits.cols};
  }

  Result<EditReport> replace(const Tokens& inserted, const EditOptions& options,
                             const RecurrentCopy* exact = nullptr, std::stop_token stop = {}) {
    return apply_edit(*m.model, state, {a, b, inserted, c}, options,
                      {&start, with_after_removed ? &after_removed : nullptr, &log, exact}, nullptr, {},
                      stop);
  }

  LoadedModel& m;
  Tokens a, b, c;
  SequenceState state;
  RecurrenceLog log;
  Snapshot start, after_removed;
  bool with_after_removed = true;
};

class Edits : public ::testing::TestWithParam<std::string> {
 protected:
  LoadedModel m{testing::converted_vectors(GetParam())};
  const Tokens d = some(20, 9);
};

TEST_P(Edits, ComputingAllOfTheSuffixIsTheFreshRunToTheBit) {
  for (const int n_a : {0, 30, 35})
    for (const int n_inserted : {0, 13})
      for (const int n_suffix : {1, 50}) {
        Sequence s(m, some(n_a, 1), some(21, 2), some(n_suffix, 3));
        Tokens inserted = some(n_inserted, 4);
        inserted.resize(n_inserted + n_pads(m.model->config(), 21, n_inserted), 10);
        const EditReport report =
            s.replace(inserted, {.recurrent = Recurrent::kLossy, .junction = n_suffix}).value();
        EXPECT_EQ(report.n_moved, 0);
        EXPECT_EQ(report.n_prefilled, static_cast<int64_t>(inserted.size()) + n_suffix);
        const Tokens all = joined({s.a, inserted, s.c, d});
        const std::vector<float> fresh = m.logits(all);
        const std::vector<float> tail(fresh.end() - 20 * m.model->config().n_vocab, fresh.end());
        EXPECT_TRUE(same_bits(s.feed(d), tail)) << n_a << " " << n_inserted << " " << n_suffix;
      }
}

TEST_P(Edits, PuttingBackWhatWasThereChangesNoBit) {
  const Tokens a = some(30, 1), b = some(21, 2), c = some(75, 3);
  const std::vector<float> never_edited = [&] {
    Sequence s(m, a, b, c);
    return s.feed(d);
  }();
  for (const int64_t junction : {0, 3, 16, 75})
    for (const bool transport : {false, true})
      for (const bool with_after_removed : {false, true}) {
        Sequence s(m, a, b, c);
        s.with_after_removed = with_after_removed;
        const EditReport report = s.replace(b, {.junction = junction, .transport = transport}).value();
        EXPECT_EQ(report.n_moved, 75 - junction_length(m.model->config(), {a, b, b, c}, junction));
        EXPECT_TRUE(same_bits(s.feed(d), never_edited)) << junction << " " << transport;
      }
}

TEST_P(Edits, VariantsDifferOnlyByWhatTheyKeep) {
  const Tokens a = some(30, 1), b = some(24, 2), c = some(80, 3), inserted = some(8, 4);
  Sequence fresh(m, a, inserted, c);
  const RecurrentCopy exact = RecurrentCopy::of(fresh.state, m.model->config());
  const std::vector<float> want = fresh.feed(d);
  const auto error = [&](const EditOptions& options) {
    Sequence s(m, a, b, c);
    EXPECT_OK(s.replace(inserted, options, &exact));
    return distance(s.feed(d), want);
  };
  const double keep = error({.recurrent = Recurrent::kKeep});
  const double with_exact = error({.recurrent = Recurrent::kExact});
  EXPECT_GT(keep, 0);
  EXPECT_GT(with_exact, 0);  // C's rows still are of one who read B
  EXPECT_EQ(error({.recurrent = Recurrent::kExact, .junction = 80}), 0);
  EXPECT_EQ(error({.recurrent = Recurrent::kLossy, .junction = 80}), 0);
  if (!m.model->config().has_mixer(MixerKind::kGatedDelta)) {
    EXPECT_EQ(keep, with_exact);
    EXPECT_EQ(keep, error({.recurrent = Recurrent::kLossy}));
    EXPECT_EQ(error({.recurrent = Recurrent::kKeep, .junction = 80}), 0);
  }
}

/// The first block sees embeddings alone: where it is recurrent, there is no indirect term, and transport
/// finds the state of the fresh run but for the keys' rounding to f16 and the heads that forgot anyway.
TEST_P(Edits, TransportFindsTheFreshStateWhereInputsAreTheSame) {
  if (m.model->config().mixers[0] != MixerKind::kGatedDelta) GTEST_SKIP() << "the first block is attention";
  const Tokens a = some(30, 1), b = some(24, 2), c = some(60, 3), inserted = some(8, 4);
  Sequence fresh(m, a, inserted, c);
  const std::vector<float> want = RecurrentCopy::of(fresh.state, m.model->config()).matrices[0];
  const auto first_block = [&](bool transport) {
    Sequence s(m, a, b, c);
    const EditReport report = s.replace(inserted, {.junction = 4, .transport = transport}).value();
    EXPECT_GT(report.staleness->relative_bound(), transport ? 0 : -1);
    return RecurrentCopy::of(s.state, m.model->config()).matrices[0];
  };
  const double stale = distance(first_block(false), want), moved = distance(first_block(true), want);
  const double norm = distance(want, std::vector<float>(want.size()));
  EXPECT_LT(moved, 2e-3 * norm);
  EXPECT_LE(moved, stale);
}

TEST_P(Edits, ACancelledOneLeavesTheStateAtItsStart) {
  Sequence s(m, some(30, 1), some(24, 2), some(80, 3));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(fails_with(s.replace(some(8, 4), {}, nullptr, stop.get_token()), Code::kCancelled,
                         "cancelled at 0 of"));
  EXPECT_EQ(s.state.n_cells(), 30);
  const std::vector<float> fresh = m.logits(joined({s.a, d}));
  const int64_t V = m.model->config().n_vocab;
  EXPECT_TRUE(same_bits(s.feed(d), {fresh.begin() + 30 * V, fresh.end()}));
}

INSTANTIATE_TEST_SUITE_P(Families, Edits, ::testing::ValuesIn(testing::kFamilies),
                         [](const auto& i) { return i.param; });

TEST(EditArithmetic, PadsAndJunctions) {
  LoadedModel sparse(testing::converted_vectors("qwen4exp")), dense(testing::converted_vectors("qwen3"));
  const ModelConfig& s = sparse.model->config();
  const ModelConfig& f = dense.model->config();
  for (int64_t removed = 0; removed < 9; ++removed)
    for (int64_t inserted = 0; inserted < 9; ++inserted) {
      const int64_t pads = n_pads(s, removed, inserted);
      EXPECT_TRUE(pads >= 0 && pads < 4);
      EXPECT_EQ((inserted + pads - removed) % 4, 0);
      EXPECT_EQ(n_pads(f, removed, inserted), 0);
    }
  const Tokens c(30, 1);
  for (int n_before = 0; n_before < 8; ++n_before)
    for (const int64_t wanted : {0, 8, 16, 30, 100}) {
      const Tokens a(n_before, 1);
      const int64_t junction = junction_length(s, {a, {}, {}, c}, wanted);
      EXPECT_GE(junction, std::min<int64_t>(30, std::max<int64_t>(wanted, (4 - n_before % 4) % 4)));
      EXPECT_TRUE((n_before + junction) % 4 == 0 || junction == 30);
      EXPECT_LE(junction, std::min<int64_t>(30, wanted + 3));
      EXPECT_EQ(junction_length(f, {a, {}, {}, c}, wanted), std::min<int64_t>(30, wanted));
    }
}

TEST(EditArguments, AreCheckedBeforeAnythingChanges) {
  LoadedModel m(testing::converted_vectors("qwen4exp"));
  Sequence s(m, some(30, 1), some(24, 2), some(80, 3));
  const auto refused = [&](const Result<EditReport>& result, const char* part) {
    return fails_with(result, Code::kInvalidArgument, part);
  };
  EXPECT_TRUE(refused(s.replace(some(7, 4), {}), "shift of -17"));
  EXPECT_TRUE(refused(s.replace(some(424, 4), {}), "the context holds 512"));
  EXPECT_TRUE(refused(s.replace(some(8, 4), {.recurrent = Recurrent::kExact}), "no state"));
  s.start.n_cells = 31;
  EXPECT_TRUE(refused(s.replace(some(8, 4), {}), "no snapshot"));
  s.start.n_cells = 30;
  s.log.truncate(60);
  EXPECT_TRUE(refused(s.replace(some(8, 4), {.transport = true}), "transport needs"));
  s.c.pop_back();
  EXPECT_TRUE(refused(s.replace(some(8, 4), {}), "spans of 133 tokens, the sequence has 134"));
  EXPECT_EQ(s.state.n_cells(), 134);
}

}  // namespace
}  // namespace forebay
