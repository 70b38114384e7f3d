/// Where mtp.* tensors go.
#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "test_checkpoint.h"

namespace forebay {
namespace {

const Path kHead = "out/mtp-model.gguf";

std::set<std::string> names_of(const GgufFile& file) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.insert(tensor.name);
  return names;
}

TEST(DraftHeadTest, MergedIsTheLastBlock) {
  const Converted converted(TestCheckpoint::with_draft_head(), convert_options("bf16"));
  const GgufMetadata& keys = converted.file->metadata();
  EXPECT_EQ(*keys.get_uint("qwen4exp.block_count"), 9u);
  EXPECT_EQ(*keys.get_uint("qwen4exp.nextn_predict_layers"), 1u);
  EXPECT_FALSE(keys.has("qwen4exp.nextn_shared_target_tensors"));
  EXPECT_EQ(*keys.get_uints("qwen4exp.attention.compress_ratios"),
            (std::vector<uint64_t>{0, 0, 0, 4, 0, 0, 0, 4, 0}));
  EXPECT_EQ(converted.file->tensors().size(), 214u + 32u);

  const TestCheckpoint checkpoint = TestCheckpoint::with_draft_head();
  // Embedding columns, then hidden columns.
  const auto embedding = checkpoint.tensors.at("mtp.fc_embedding.weight").floats();
  const auto hidden = checkpoint.tensors.at("mtp.fc_hidden.weight").floats();
  std::vector<float> both;
  for (size_t row = 0; row < 64; ++row)
    for (const auto* part : {&embedding, &hidden})
      both.insert(both.end(), part->begin() + static_cast<ptrdiff_t>(row * 64),
                  part->begin() + static_cast<ptrdiff_t>(row * 64 + 64));
  EXPECT_EQ(converted.floats("blk.8.nextn.eh_proj.weight"), both);
  EXPECT_EQ(converted.floats("blk.8.nextn.enorm.weight"), std::vector<float>(64, 1.25f));
  EXPECT_EQ(converted.file->find("blk.8.nextn.hnorm.weight")->ne[0], 256u);
  EXPECT_EQ(converted.floats("blk.8.nextn.hc_head_down.weight"), converted.floats("output_hc_down.weight"));
  EXPECT_EQ(converted.floats("blk.8.attn_q.weight"), converted.floats("blk.3.attn_q.weight"));
}

TEST(DraftHeadTest, SeparateIsASecondFile) {
  const TestCheckpoint checkpoint = TestCheckpoint::with_draft_head();
  const Converted merged(checkpoint, convert_options("q8_0"));
  const Converted separate(checkpoint, convert_options("q8_0", MtpMode::kSeparate));
  MemoryStorage storage = separate.storage;
  const auto head = GgufFile::open(storage, kHead);
  ASSERT_OK(head);
  ASSERT_EQ(separate.report.outputs.size(), 2u);
  EXPECT_EQ(separate.report.outputs[1].path, kHead);
  EXPECT_EQ(separate.report.outputs[1].n_tensors, 32);

  EXPECT_EQ(*separate.file->metadata().get_uint("qwen4exp.block_count"), 8u);
  EXPECT_FALSE(separate.file->metadata().has("qwen4exp.nextn_predict_layers"));
  EXPECT_EQ(*head->metadata().get_uint("qwen4exp.block_count"), 9u);
  EXPECT_EQ(*head->metadata().get_uint("qwen4exp.nextn_predict_layers"), 1u);
  EXPECT_TRUE(*head->metadata().get_bool("qwen4exp.nextn_shared_target_tensors"));
  EXPECT_EQ(head->metadata().get_uints("qwen4exp.attention.compress_ratios")->size(), 9u);
  EXPECT_EQ(head->find("token_embd.weight"), nullptr);

  // Together they hold what the merged file holds, and the trunk is what it is without a head.
  std::set<std::string> names = names_of(*separate.file);
  for (const TensorInfo& tensor : head->tensors()) {
    EXPECT_TRUE(tensor.name.starts_with("blk.8.")) << tensor.name;
    EXPECT_EQ(Converted::floats_of(*head, tensor.name), merged.floats(tensor.name));
    names.insert(tensor.name);
  }
  EXPECT_EQ(names, names_of(*merged.file));
  EXPECT_EQ(separate.bytes(), Converted(checkpoint, convert_options("q8_0", MtpMode::kNone)).bytes());
}

TEST(DraftHeadTest, NoneLeavesItOut) {
  const Converted without(TestCheckpoint::with_draft_head(), convert_options("bf16", MtpMode::kNone));
  EXPECT_EQ(without.bytes(), Converted(TestCheckpoint::vectors("qwen4exp"), convert_options("bf16")).bytes());
  EXPECT_EQ(without.report.notes[0], "left out: 31 tensors of the draft head");
}

TEST(DraftHeadTest, AskedForButNotThere) {
  const Converted converted(TestCheckpoint::vectors("qwen4exp"), convert_options("bf16", MtpMode::kSeparate));
  EXPECT_EQ(converted.report.outputs.size(), 1u);
  EXPECT_EQ(converted.report.notes[0], "no draft head (mtp.*) in the checkpoint: no second file");
}

TEST(DraftHeadTest, PlainResidualFamilies) {
  for (const std::string family : {"qwen3next", "qwen35moe"}) {
    const Converted converted(TestCheckpoint::with_plain_draft_head(family), convert_options("bf16"));
    EXPECT_EQ(*converted.file->metadata().get_uint(family + ".block_count"), 5u);
    for (const char* name : {"attn_norm", "post_attention_norm", "attn_q", "ffn_gate_exps", "nextn.enorm",
                             "nextn.hnorm", "nextn.eh_proj", "nextn.shared_head_norm"})
      EXPECT_NE(converted.file->find("blk.4." + std::string(name) + ".weight"), nullptr)
          << family << " " << name;
    EXPECT_EQ(converted.floats("blk.4.nextn.shared_head_norm.weight"),
              converted.floats("output_norm.weight"));
  }
}

TEST(DraftHeadTest, OneLayerOnly) {
  TestCheckpoint checkpoint = TestCheckpoint::with_draft_head();
  const auto tensors = checkpoint.tensors;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with("mtp.layers.0.")) checkpoint.tensors["mtp.layers.1." + name.substr(13)] = tensor;
  MemoryStorage storage;
  checkpoint.write(storage);
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("bf16")), Code::kUnsupported, "mtp.layers.1.",
                         "wanted one"));
  EXPECT_OK(convert_in(storage, convert_options("bf16", MtpMode::kNone)));
}

}  // namespace
}  // namespace forebay
