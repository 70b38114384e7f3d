// The measurement of edits on the embedded model: what must be zero is, what the spans are, what is refused.
#include "eval/scr.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "eval/scr_case.h"

namespace forebay {
namespace {

class Scr : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string model = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";
    if (!std::filesystem::exists(model)) GTEST_SKIP() << "models/pebble.gguf is not there";
    EngineOptions options;
    options.model = model;
    options.context = 1024;
    engine_ = Engine::open(options).value();
  }
  std::string error(const std::string& json, int64_t edit) {
    const Result<ScrCase> scr = scr_case_from_conversation(*engine_, json, edit);
    return scr ? "" : scr.error().message;
  }
  std::string text(const std::vector<int32_t>& ids) { return engine_->detokenize(ids).value(); }

  std::optional<Engine> engine_;
};

TEST(SplitEdit, FindsTheLongestBeginningAndThenTheLongestEnd) {
  const ScrSpans s = split_edit({1, 2, 3, 4, 5, 6}, {1, 2, 9, 5, 6});
  EXPECT_EQ(s.a, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(s.b, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(s.b_new, (std::vector<int32_t>{9}));
  EXPECT_EQ(s.c, (std::vector<int32_t>{5, 6}));
  // A repetition is not counted twice.
  const ScrSpans shorter = split_edit({1, 1, 1}, {1, 1});
  EXPECT_EQ(shorter.a.size() + shorter.c.size(), 2u);
  EXPECT_EQ(shorter.b.size(), 1u);
  EXPECT_TRUE(split_edit({1, 2}, {1, 3}).c.empty());
}

const std::string kChat = R"({"messages": [
  {"role": "system", "content": "You are brief."},
  {"role": "user", "content": "line one\nline two\nline three"},
  {"role": "assistant", "content": "Read.", "reasoning_content": "Three lines."},
  {"role": "user", "content": "What is 37 + 58?"},
  {"role": "assistant", "content": "95"}])";

TEST_F(Scr, SpansOfAConversation) {
  const std::string edits = kChat + R"(, "edits": [
    {"name": "n", "kind": "k", "message": 0, "replace": "brief", "with": "very brief"},
    {"message": 2, "reasoning": "I think."},
    {"message": 1, "content": "folded"}]})";
  EXPECT_EQ(n_scr_edits(edits).value(), 3);
  const ScrCase replaced = scr_case_from_conversation(*engine_, edits, 0).value();
  EXPECT_EQ(replaced.name, "n");
  EXPECT_EQ(replaced.kind, "k");
  EXPECT_EQ(text(replaced.spans.a) + text(replaced.spans.b_new) + text(replaced.spans.c).substr(0, 20),
            std::string("<|im_start|>system\nYou are very brief.<|im_end|>\n<|im_start|>user\nline one")
                .substr(0, (text(replaced.spans.a) + text(replaced.spans.b_new)).size() + 20));
  EXPECT_EQ(text(replaced.spans.d), "95<|im_end|>\n");

  const ScrCase thought = scr_case_from_conversation(*engine_, edits, 1).value();
  EXPECT_NE(text(thought.spans.b).find("I think."), std::string::npos);
  EXPECT_EQ(text(thought.spans.b_new).find("think"), std::string::npos);

  // Without a list, N is a message: its reasoning goes, or it is folded.
  const ScrCase stripped = scr_case_from_conversation(*engine_, kChat + "}", 2).value();
  EXPECT_NE(text(stripped.spans.b).find("Three lines."), std::string::npos);
  const ScrCase folded = scr_case_from_conversation(*engine_, kChat + "}", 1).value();
  EXPECT_NE(text(folded.spans.b).find("three"), std::string::npos);
  EXPECT_NE(text(folded.spans.b_new).find("2 more lines"), std::string::npos);
}

TEST_F(Scr, BadConversationsAreNamed) {
  EXPECT_NE(error("{", 0).find("not JSON"), std::string::npos);
  EXPECT_NE(error("[]", 0).find("\"messages\""), std::string::npos);
  EXPECT_NE(error(R"({"messages": [{}]})", 0).find("\"role\""), std::string::npos);
  EXPECT_NE(error(kChat + R"(, "edits": 3})", 0).find("\"edits\""), std::string::npos);
  EXPECT_NE(error(kChat + R"(, "edits": [3]})", 0).find("\"message\""), std::string::npos);
  EXPECT_NE(error(kChat + R"(, "edits": [{"message": 9}]})", 0).find("message 9"), std::string::npos);
  EXPECT_NE(error(kChat + R"(, "edits": [{"message": 0, "content": "You are brief."}]})", 0).find("nothing"),
            std::string::npos);
  EXPECT_NE(error(kChat + "}", 5).find("5 messages"), std::string::npos);
  EXPECT_NE(error(kChat + "}", 4).find("the answer"), std::string::npos);
}

TEST_F(Scr, TheSanityRowIsExactlyZeroAndTheOthersAreNot) {
  const ScrCase scr = scr_case_from_conversation(*engine_, kChat + "}", 1).value();
  ScrOptions options;
  options.junctions = {4};
  options.min_positions = 12;
  options.n_generate = 8;
  int64_t last = 0, total = 0;
  const ScrReport report = measure_scr(*engine_, scr.spans, options,
                                       [&](int64_t done, int64_t all) {
                                         EXPECT_EQ(done, ++last);
                                         total = all;
                                       },
                                       {})
                               .value();
  EXPECT_EQ(report.n_d, 12);
  EXPECT_EQ((report.n_b_new + report.n_pads - report.n_b) % 4, 0);
  EXPECT_GE(total, last);
  std::map<std::string, ScrRow> rows;
  for (const ScrRow& row : report.rows) rows[row.variant] = row;
  for (const char* exact : {"fresh", "sanity"}) {
    EXPECT_EQ(rows.at(exact).max, 0) << exact;
    EXPECT_EQ(rows.at(exact).top1, 1) << exact;
    EXPECT_EQ(rows.at(exact).perplexity, rows.at("fresh").perplexity);
    EXPECT_EQ(rows.at(exact).n_repeated, rows.at("fresh").n_repeated);
  }
  for (const char* variant : {"keep", "keep + transport", "exact-state", "lossy"}) {
    EXPECT_GT(rows.at(variant).mean, 0) << variant;
    EXPECT_GE(rows.at(variant).junction, 4);
    EXPECT_LT(rows.at(variant).junction, 8);
  }
  EXPECT_EQ(rows.contains("no pads"), report.n_pads > 0);
  EXPECT_FALSE(report.staleness.heads.empty());
  EXPECT_GT(report.staleness.relative_bound(), 0);
  EXPECT_GT(report.log_bytes, 0u);
  EXPECT_NE(half_life_script(report.staleness, "'t'", "'o'").find("plot $heads"), std::string::npos);

  ScrSpans nothing = scr.spans;
  nothing.c.clear();
  EXPECT_FALSE(measure_scr(*engine_, nothing, options, {}, {}).has_value());
}

}  // namespace
}  // namespace forebay
