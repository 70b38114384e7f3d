/// One model in the layouts that checkpoints come in: the files must be the same, byte for byte.
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "test_checkpoint.h"

namespace forebay {
namespace {

/// Rows of an F32 or BF16 tensor's first dimension, as tensors of their own.
TestTensor slice(const TestTensor& tensor, uint64_t first, uint64_t n, std::vector<uint64_t> shape) {
  const size_t step = tensor.bytes.size() / tensor.shape[0];
  return {tensor.type,
          std::move(shape),
          {tensor.bytes.begin() + static_cast<ptrdiff_t>(first * step),
           tensor.bytes.begin() + static_cast<ptrdiff_t>((first + n) * step)}};
}

/// Experts one by one, as most published checkpoints have them.
void unstack_experts(TestCheckpoint& checkpoint) {
  const auto tensors = checkpoint.tensors;
  for (const auto& [name, tensor] : tensors) {
    const bool is_down = name.ends_with("experts.down_proj");
    if (!is_down && !name.ends_with("experts.gate_up_proj")) continue;
    const std::string prefix = name.substr(0, name.rfind('.') + 1);
    for (uint64_t expert = 0; expert < tensor.shape[0]; ++expert) {
      TestTensor one = slice(tensor, expert, 1, {tensor.shape[1], tensor.shape[2]});
      const auto set = [&](const char* plane, TestTensor part) {
        checkpoint.tensors[fmt::format("{}{}.{}.weight", prefix, expert, plane)] = std::move(part);
      };
      if (is_down) {
        set("down_proj", one);
      } else {
        const uint64_t half = tensor.shape[1] / 2;
        set("gate_proj", slice(one, 0, half, {half, tensor.shape[2]}));
        set("up_proj", slice(one, half, half, {half, tensor.shape[2]}));
      }
    }
    checkpoint.tensors.erase(name);
  }
}

TEST(LayoutsTest, ExpertsStackedOrOneByOne) {
  for (const std::string family : {"qwen3moe", "qwen3next", "qwen35moe", "qwen4exp"}) {
    TestCheckpoint checkpoint = TestCheckpoint::vectors(family);
    const Converted stacked(checkpoint, convert_options("q4_0"));
    unstack_experts(checkpoint);
    EXPECT_EQ(Converted(checkpoint, convert_options("q4_0")).bytes(), stacked.bytes()) << family;
  }
}

TEST(LayoutsTest, OneFileOrShards) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3next");
  const Converted single(checkpoint, convert_options("bf16"));
  for (const int n_shards : {2, 5})
    EXPECT_EQ(Converted(checkpoint, convert_options("bf16"), n_shards).bytes(), single.bytes());
}

TEST(LayoutsTest, PrefixesAroundTheTextModel) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen35moe");
  const Converted plain(checkpoint, convert_options("bf16"));
  for (const std::string prefix : {"model.language_model.", "language_model.model."}) {
    TestCheckpoint wrapped = checkpoint;
    wrapped.rename_all("model.", prefix);
    EXPECT_EQ(Converted(wrapped, convert_options("bf16")).bytes(), plain.bytes()) << prefix;
    if (prefix == "language_model.model.") wrapped.rename_all("lm_head.", "language_model.lm_head.");
    EXPECT_EQ(Converted(wrapped, convert_options("bf16")).bytes(), plain.bytes()) << prefix;
  }
}

TEST(LayoutsTest, TextConfigInsideAMultimodalOne) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen35moe");
  const Converted plain(checkpoint, convert_options("bf16"));
  checkpoint.config = {{"model_type", "qwen3_5_moe"},
                       {"text_config", checkpoint.config},
                       {"tie_word_embeddings", false},
                       {"vision_config", {{"hidden_size", 1152}, {"model_type", "other"}}}};
  checkpoint.rename_all("model.", "model.language_model.");
  checkpoint.set("model.visual.blocks.0.attn.qkv.weight", {2, 2}, {1, 2, 3, 4});
  checkpoint.set("visual.merger.norm.weight", {2}, {1, 2});
  const Converted nested(checkpoint, convert_options("bf16"));
  EXPECT_EQ(nested.bytes(), plain.bytes());
  EXPECT_EQ(nested.report.notes[0], "left out: 2 tensors of the vision part");
  // The text part's own type is enough, and the outer one's, too.
  checkpoint.config["text_config"].erase("model_type");
  EXPECT_EQ(Converted(checkpoint, convert_options("bf16")).bytes(), plain.bytes());
}

TEST(LayoutsTest, NgramTableInShards) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen4exp");
  const Converted whole(checkpoint, convert_options("iq4_nl"));
  const std::string name = "model.layers.1.ple.ple_embedding.ngram_embedding";
  const TestTensor table = checkpoint.tensors.at(name + ".weight");
  checkpoint.tensors.erase(name + ".weight");
  // 12 shards of unequal height, so that 10 must not sort before 2.
  uint64_t first = 0;
  for (uint64_t shard = 0; shard < 12; ++shard) {
    const uint64_t n = shard == 11 ? 1024 - first : 80 + shard;
    checkpoint.tensors[fmt::format("{}.{}.weight", name, shard)] = slice(table, first, n, {n, 32});
    first += n;
  }
  EXPECT_EQ(Converted(checkpoint, convert_options("iq4_nl")).bytes(), whole.bytes());

  MemoryStorage storage;
  checkpoint.tensors.erase(name + ".4.weight");
  checkpoint.write(storage);
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("bf16")), Code::kNotFound, name + ".5.weight",
                         "number 4"));
}

/// E4M3 values of a matrix and the scales of its blocks, such that value * scale is what it stands for.
void quantise_to_fp8(TestCheckpoint& checkpoint, const std::string& name, TestTensor& exact) {
  const TestTensor source = checkpoint.tensors.at(name);
  const uint64_t columns = source.shape.back(), rows = source.shape[source.shape.size() - 2];
  const uint64_t matrices = source.shape.size() == 3 ? source.shape[0] : 1;
  const uint64_t scale_rows = (rows + 15) / 16, scale_columns = (columns + 31) / 32;  // blocks of 16 x 32
  std::vector<float> scales, values = source.floats();
  for (uint64_t i = 0; i < matrices * scale_rows * scale_columns; ++i)
    scales.push_back(std::ldexp(1.0f + 0.25f * static_cast<float>(i % 3), -static_cast<int>(i % 5)));
  std::vector<std::byte> codes(values.size());
  for (uint64_t m = 0; m < matrices; ++m)
    for (uint64_t r = 0; r < rows; ++r)
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t i = (m * rows + r) * columns + c;
        // Codes 0x30 .. 0x3f stand for (8 + low bits) * 2^(exponent - 10), exponents 6 and 7; the top bit is
        // the sign.
        const auto code = static_cast<uint8_t>((values[i] < 0 ? 0x80 : 0) | 0x30 | (i * 7 % 16));
        codes[i] = static_cast<std::byte>(code);
        const float magnitude = std::ldexp(static_cast<float>(8 + (code & 7)), ((code >> 3) & 15) - 10);
        values[i] = (code & 0x80 ? -magnitude : magnitude) *
                    scales[(m * scale_rows + r / 16) * scale_columns + c / 32];
      }
  checkpoint.tensors[name] = {SafeType::kF8E4M3, source.shape, codes};
  std::vector<uint64_t> scale_shape = source.shape;
  scale_shape[scale_shape.size() - 2] = scale_rows;
  scale_shape.back() = scale_columns;
  checkpoint.set(name + "_scale_inv", scale_shape, scales);
  const auto bytes = std::as_bytes(std::span(values));
  exact = {SafeType::kF32, source.shape, {bytes.begin(), bytes.end()}};
}

TEST(LayoutsTest, Fp8WithBlockScales) {
  TestCheckpoint fp8 = TestCheckpoint::vectors("qwen35moe"), exact = fp8;
  fp8.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {16, 32}}};
  for (const std::string name :
       {"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj",
        "model.layers.1.linear_attn.in_proj_qkv.weight", "model.layers.1.linear_attn.out_proj.weight",
        "model.layers.3.self_attn.q_proj.weight", "model.layers.3.mlp.shared_expert.down_proj.weight"})
    quantise_to_fp8(fp8, name, exact.tensors[name]);
  const Converted from_fp8(fp8, convert_options("f32")), from_f32(exact, convert_options("f32"));
  EXPECT_EQ(from_fp8.bytes(), from_f32.bytes());

  MemoryStorage storage;
  TestCheckpoint broken = fp8;
  broken.tensors.erase("model.layers.3.self_attn.q_proj.weight_scale_inv");
  broken.write(storage);
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("f32")), Code::kUnsupported,
                         "model.layers.3.self_attn.q_proj.weight", "F8_E4M3", "without block scales"));
  broken = fp8;
  broken.set("model.layers.3.self_attn.q_proj.weight_scale_inv", {1, 1}, {1});
  broken.write(storage);
  EXPECT_TRUE(fails_with(convert_in(storage, convert_options("f32")), Code::kCorrupt,
                         "model.layers.3.self_attn.q_proj.weight_scale_inv", "[1, 1]", "[16, 2]"));
  broken = fp8;
  broken.config["quantization_config"]["quant_method"] = "gptq";
  broken.write(storage);
  EXPECT_TRUE(
      fails_with(convert_in(storage, convert_options("f32")), Code::kUnsupported, "quant_method", "gptq"));
}

}  // namespace
}  // namespace forebay
