#include <gtest/gtest.h>

#include "convert/type_plan.h"
#include "support/result_matchers.h"
#include "test_checkpoint.h"

namespace forebay {
namespace {

TEST(PatternTest, StarsAndQuestionMarks) {
  const auto matches = [](std::string_view pattern, std::string_view name) {
    return matches_pattern(pattern, name);
  };
  EXPECT_TRUE(matches("token_embd.weight", "token_embd.weight"));
  EXPECT_FALSE(matches("token_embd", "token_embd.weight"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("blk.?.ffn_*_exps.weight", "blk.3.ffn_down_exps.weight"));
  EXPECT_FALSE(matches("blk.?.ffn_*_exps.weight", "blk.13.ffn_down_exps.weight"));
  EXPECT_TRUE(matches("blk.*.ffn_*_exps.weight", "blk.13.ffn_down_exps.weight"));
  EXPECT_FALSE(matches("*_exps", "blk.13.ffn_down_exps.weight"));
  EXPECT_TRUE(matches("*a*b*", "xxaxxbxx"));
  EXPECT_FALSE(matches("*a*b*", "xxbxxaxx"));
  EXPECT_TRUE(matches("a*ab", "aaab"));  // the star must give back
  EXPECT_FALSE(matches("?", ""));
}

TEST(ParseTypePlanTest, DefaultAndEntries) {
  const auto plan = parse_type_plan("q4_k, *ffn_down*=Q6_K ,token_embd.weight=bf16");
  ASSERT_OK(plan);
  EXPECT_EQ(plan->default_type, DType::kQ4_K);
  ASSERT_EQ(plan->entries.size(), 2u);
  EXPECT_EQ(plan->entries[0].pattern, "*ffn_down*");
  EXPECT_EQ(plan->entries[0].type, DType::kQ6_K);
  EXPECT_EQ(plan->entries[1].pattern, "token_embd.weight");
  EXPECT_EQ(plan->entries[1].type, DType::kBF16);
}

TEST(ParseTypePlanTest, LinesAndComments) {
  const auto plan = parse_type_plan("# a plan\n*down*=q8_0 # wide\r\n\n  q4_0\n");
  ASSERT_OK(plan);
  EXPECT_EQ(plan->default_type, DType::kQ4_0);
  ASSERT_EQ(plan->entries.size(), 1u);
  EXPECT_EQ(plan->entries[0].pattern, "*down*");
}

TEST(ParseTypePlanTest, EntriesAloneKeepTheDefault) {
  const auto plan = parse_type_plan("*down*=q4_0");
  ASSERT_OK(plan);
  EXPECT_EQ(plan->default_type, DType::kQ8_0);
}

TEST(ParseTypePlanTest, Errors) {
  EXPECT_TRUE(fails_with(parse_type_plan(""), Code::kInvalidArgument, "no type given", "Q8_0"));
  EXPECT_TRUE(fails_with(parse_type_plan("q9_9"), Code::kInvalidArgument, "'q9_9' is not a type", "Q4_K"));
  EXPECT_TRUE(fails_with(parse_type_plan("*=q9"), Code::kInvalidArgument, "'q9'"));
  EXPECT_TRUE(fails_with(parse_type_plan("=q8_0"), Code::kInvalidArgument, "'=q8_0' has no pattern"));
  EXPECT_TRUE(fails_with(parse_type_plan("q8_0,q4_0"), Code::kInvalidArgument, "'q4_0' is a second default"));
  EXPECT_TRUE(fails_with(parse_type_plan("iq2_xxs"), Code::kUnsupported, "IQ2_XXS cannot be written"));
  EXPECT_TRUE(fails_with(parse_type_plan("i32"), Code::kUnsupported, "I32 cannot be written"));
  EXPECT_EQ(parse_type_plan("iq2_xxs", WeightSource::kRandom).value().default_type, DType::kIQ2_XXS);
  EXPECT_TRUE(fails_with(parse_type_plan("i32", WeightSource::kRandom), Code::kUnsupported, "IQ2_XXS"));
}

TEST(TypeForRowsTest, NarrowBlocksThenSixteenBits) {
  struct Row {
    DType wanted;
    uint64_t n;
    DType given;
  };
  const Row table[] = {
      {DType::kQ4_K, 2560, DType::kQ4_K},   {DType::kQ4_K, 640, DType::kQ5_0},
      {DType::kQ5_K, 640, DType::kQ5_1},    {DType::kQ6_K, 640, DType::kQ8_0},
      {DType::kQ2_K, 160, DType::kQ4_0},    {DType::kQ3_K, 160, DType::kQ4_0},
      {DType::kQ2_0, 64, DType::kQ2_0},     {DType::kQ2_0, 96, DType::kIQ4_NL},
      {DType::kIQ2_XS, 32, DType::kIQ4_NL}, {DType::kIQ4_XS, 96, DType::kIQ4_NL},
      {DType::kQ8_0, 32, DType::kQ8_0},     {DType::kQ8_0, 48, DType::kBF16},
      {DType::kQ4_K, 48, DType::kBF16},     {DType::kQ4_0, 33, DType::kBF16},
      {DType::kF32, 33, DType::kF32},       {DType::kF16, 33, DType::kF16},
      {DType::kBF16, 1, DType::kBF16},
  };
  for (const Row& row : table)
    EXPECT_EQ(type_for_rows(row.wanted, row.n, false), row.given) << name_of(row.wanted) << " of " << row.n;
  EXPECT_EQ(type_for_rows(DType::kQ8_0, 48, true), DType::kF16);
}

std::map<std::string, DType> types_of(const Converted& converted) {
  std::map<std::string, DType> types;
  for (const TensorInfo& tensor : converted.file->tensors()) types[tensor.name] = tensor.type;
  return types;
}

TEST(PlanTest, LowDefaultKeepsMatricesAtEightBits) {
  const auto types = types_of(Converted(TestCheckpoint::vectors("qwen4exp"), convert_options("q4_0")));
  for (const char* bulk :
       {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_down_exps.weight", "per_layer_token_embd.weight"})
    EXPECT_EQ(types.at(bulk), DType::kQ4_0) << bulk;
  for (const char* matrix : {"token_embd.weight", "output.weight", "output_hc_down.weight",
                             "blk.0.hc_attn_up.weight", "blk.0.attn_qkv.weight", "blk.0.ssm_out.weight",
                             "blk.3.attn_q.weight", "blk.0.ffn_gate_shexp.weight", "blk.1.ple_key.weight"})
    EXPECT_EQ(types.at(matrix), DType::kQ8_0) << matrix;
  for (const char* structure :
       {"blk.0.ffn_gate_inp.weight", "blk.0.hc_attn_inject.weight", "blk.0.ssm_alpha.weight",
        "blk.0.ssm_conv1d.weight", "blk.0.ffn_gate_inp_shexp.weight", "blk.0.ssm_a"})
    EXPECT_EQ(types.at(structure), DType::kF32) << structure;
  EXPECT_EQ(types.at("blk.3.indexer.q_proj.weight"), DType::kBF16);
}

TEST(PlanTest, WideDefaultIsForAll) {
  const auto types = types_of(Converted(TestCheckpoint::vectors("qwen4exp"), convert_options("f16")));
  for (const char* name : {"token_embd.weight", "blk.3.indexer.q_proj.weight", "blk.0.ffn_gate_exps.weight"})
    EXPECT_EQ(types.at(name), DType::kF16) << name;
}

TEST(PlanTest, FirstEntryThatMatchesWins) {
  const Converted converted(
      TestCheckpoint::vectors("qwen4exp"),
      convert_options("q4_0,blk.2.ffn_down_exps.weight=f16,*_down_exps*=q5_1,output.weight=q6_k,"
                      "blk.*=q5_0"));
  const auto types = types_of(converted);
  EXPECT_EQ(types.at("blk.2.ffn_down_exps.weight"), DType::kF16);
  EXPECT_EQ(types.at("blk.3.ffn_down_exps.weight"), DType::kQ5_1);
  EXPECT_EQ(types.at("blk.3.ffn_up_exps.weight"), DType::kQ5_0);
  EXPECT_EQ(types.at("blk.3.attn_q.weight"), DType::kQ5_0);
  EXPECT_EQ(types.at("output.weight"), DType::kQ8_0);  // rows of 64: Q6_K does not fit
  EXPECT_EQ(types.at("token_embd.weight"), DType::kQ8_0);
  EXPECT_EQ(types.at("per_layer_token_embd.weight"), DType::kQ4_0);
  // blk.* names these, too, but they keep their precision.
  EXPECT_EQ(types.at("blk.3.indexer.k_proj.weight"), DType::kBF16);
  EXPECT_EQ(types.at("blk.3.ffn_gate_inp.weight"), DType::kF32);
}

TEST(PlanTest, NotesSayWhatWasReplaced) {
  const Converted converted(TestCheckpoint::vectors("qwen3"), convert_options("q4_k,*norm*=q8_0"));
  EXPECT_EQ(converted.report.notes,
            (std::vector<std::string>{
                "no tokenizer.json in the checkpoint: the model can be run on token ids only",
                "plan entry *norm*=Q8_0 matches only tensors that keep their precision",
                "Q5_0 instead of Q4_K for 6 tensors with rows of 64 values: blk.0.ffn_gate.weight, ...",
                "Q5_0 instead of Q4_K for 3 tensors with rows of 96 values: blk.0.ffn_down.weight, ..."}));
}

TEST(PlanTest, AnEntryForNothingIsAnError) {
  MemoryStorage storage;
  TestCheckpoint::vectors("qwen3").write(storage);
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("q8_0,*ffn_dwon*=q4_0")), Code::kInvalidArgument,
                         "*ffn_dwon*=Q4_0", "matches no tensor"));
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("q8_0,*=q4_0,*ffn_down*=q5_0")),
                         Code::kInvalidArgument, "*ffn_down*=Q5_0", "that an earlier entry left"));
  EXPECT_FALSE(storage.exists(kOutput));
}

TEST(PlanTest, EveryWritableTypeConverts) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3moe");
  for (const std::string type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_0", "q2_k",
                                 "q4_k", "q5_k", "q6_k", "iq4_nl", "mxfp4"}) {
    const Converted converted(checkpoint, convert_options(type));
    EXPECT_EQ(converted.file->tensors().size(), 39u) << type;
  }
}

}  // namespace
}  // namespace forebay
