/// Tokenizer, chat template and sampling keys.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "test_checkpoint.h"
#include "tokenizer/byte_map.h"

namespace forebay {
namespace {

using Json = nlohmann::json;

constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// All bytes, two merges, and four added tokens from id 258 on; the vectors' embedding has 512 rows.
Json tiny_tokenizer() {
  Json vocab;
  for (int byte = 0; byte < 256; ++byte)
    vocab[to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  const auto added = [](int id, const char* content, bool special) {
    return Json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  };
  return {{"added_tokens",
           {added(258, "<|endoftext|>", true), added(259, "<|im_start|>", true),
            added(260, "<|im_end|>", true), added(261, "<tool>", false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", {{"Regex", kQwen2Pattern}}},
               {"behavior", "Isolated"},
               {"invert", false}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"post_processor", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b", "ab c"}}}}};
}

TestCheckpoint with_tokenizer(const std::string& family = "qwen3") {
  TestCheckpoint checkpoint = family == "llama" ? TestCheckpoint::llama() : TestCheckpoint::vectors(family);
  checkpoint.files["tokenizer.json"] = tiny_tokenizer().dump();
  return checkpoint;
}

TEST(TokenizerKeysTest, Vocabulary) {
  const Converted converted(with_tokenizer(), convert_options("bf16"));
  const GgufMetadata& keys = converted.file->metadata();
  EXPECT_EQ(*keys.get_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(*keys.get_string("tokenizer.ggml.pre"), "qwen2");
  const auto tokens = *keys.get_strings("tokenizer.ggml.tokens");
  const auto kinds = *keys.get_ints("tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 512u);  // padded to the embedding
  ASSERT_EQ(kinds.size(), 512u);
  EXPECT_EQ(tokens[' '], "\xc4\xa0");
  EXPECT_EQ(tokens[257], "abc");
  EXPECT_EQ(tokens[260], "<|im_end|>");
  EXPECT_EQ(tokens[511], "[PAD511]");
  EXPECT_EQ(kinds[257], 1);
  EXPECT_EQ(kinds[260], 3);
  EXPECT_EQ(kinds[261], 4);
  EXPECT_EQ(kinds[511], 5);
  const auto merges = *keys.get_strings("tokenizer.ggml.merges");
  EXPECT_EQ(std::vector<std::string>(merges.begin(), merges.end()),
            (std::vector<std::string>{"a b", "ab c"}));
  EXPECT_FALSE(*keys.get_bool("tokenizer.ggml.add_bos_token"));
  EXPECT_TRUE(*keys.get_bool("forebay.tokenizer.nfc"));
  for (const char* absent : {"bos", "eos", "padding"})  // nobody says
    EXPECT_FALSE(keys.has(fmt::format("tokenizer.ggml.{}_token_id", absent)));
  EXPECT_EQ(converted.report.notes, std::vector<std::string>{"no chat template in the checkpoint"});
}

struct EosCase {
  const char* what;
  Json generation, tokenizer_config, config;
  std::optional<uint64_t> eos;
};

TEST(TokenizerKeysTest, WhatEndsAnAnswer) {
  const std::vector<EosCase> table = {
      {"a list with the chat's end", {{"eos_token_id", {258, 260}}}, nullptr, nullptr, 260},
      {"a list without it", {{"eos_token_id", {259, 258}}}, nullptr, nullptr, 259},
      {"one id", {{"eos_token_id", 258}}, {{"eos_token", "<|im_end|>"}}, nullptr, 258},
      {"tokenizer_config by text", nullptr, {{"eos_token", "<|im_end|>"}}, 258, 260},
      {"tokenizer_config by object", nullptr, {{"eos_token", {{"content", "<|im_start|>"}}}}, 258, 259},
      {"tokenizer_config with a stranger", nullptr, {{"eos_token", "</s>"}}, 258, 258},
      {"config only", nullptr, nullptr, 258, 258},
      {"config list", nullptr, nullptr, {259, 258}, 259},
      {"nobody", Json::object(), Json::object(), nullptr, std::nullopt},
  };
  for (const EosCase& c : table) {
    TestCheckpoint checkpoint = with_tokenizer();
    if (!c.generation.is_null()) checkpoint.files["generation_config.json"] = c.generation.dump();
    if (!c.tokenizer_config.is_null()) checkpoint.files["tokenizer_config.json"] = c.tokenizer_config.dump();
    checkpoint.config["eos_token_id"] = c.config;
    const Converted converted(checkpoint, convert_options("bf16"));
    const GgufMetadata& keys = converted.file->metadata();
    std::optional<uint64_t> eos;
    if (keys.has("tokenizer.ggml.eos_token_id")) eos = *keys.get_uint("tokenizer.ggml.eos_token_id");
    EXPECT_EQ(eos, c.eos) << c.what;
  }
}

TEST(TokenizerKeysTest, PaddingAndNoBos) {
  TestCheckpoint checkpoint = with_tokenizer();
  checkpoint.files["tokenizer_config.json"] =
      R"({"pad_token": "<|endoftext|>", "bos_token": "<|im_start|>"})";
  const Converted converted(checkpoint, convert_options("bf16"));
  EXPECT_EQ(*converted.file->metadata().get_uint("tokenizer.ggml.padding_token_id"), 258u);
  EXPECT_FALSE(converted.file->metadata().has("tokenizer.ggml.bos_token_id"));
}

TEST(TokenizerKeysTest, LlamaBos) {
  const auto added = [](const std::string& tokenizer_config, const Json& post_processor) {
    TestCheckpoint checkpoint = with_tokenizer("llama");
    checkpoint.config["bos_token_id"] = 259;
    checkpoint.files["tokenizer_config.json"] = tokenizer_config;
    Json tokenizer = tiny_tokenizer();
    tokenizer["post_processor"] = post_processor;
    checkpoint.files["tokenizer.json"] = tokenizer.dump();
    const Converted converted(checkpoint, convert_options("bf16"));
    EXPECT_EQ(*converted.file->metadata().get_uint("tokenizer.ggml.bos_token_id"), 259u);
    return *converted.file->metadata().get_bool("tokenizer.ggml.add_bos_token");
  };
  const Json processor = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<|im_start|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}};
  EXPECT_FALSE(added("{}", nullptr));
  EXPECT_TRUE(added(R"({"add_bos_token": true})", nullptr));
  EXPECT_TRUE(added("{}", processor));
  EXPECT_TRUE(added("{}", {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, processor}}}));
  EXPECT_FALSE(added(R"({"add_bos_token": false})", processor));
  for (const Json& other :
       {Json{{"type", "ByteLevel"}}, Json{{"type", 3}}, Json("ByteLevel"), Json{{"type", "Sequence"}},
        Json{{"type", "Sequence"}, {"processors", 1}}, Json{{"type", "TemplateProcessing"}}})
    EXPECT_FALSE(added("{}", other)) << other;
}

TEST(ChatTemplateTest, FileBeforeConfig) {
  TestCheckpoint checkpoint = with_tokenizer();
  checkpoint.files["tokenizer_config.json"] = R"({"chat_template": "from config"})";
  EXPECT_EQ(
      *Converted(checkpoint, convert_options("bf16")).file->metadata().get_string("tokenizer.chat_template"),
      "from config");
  checkpoint.files["chat_template.jinja"] = "from\nfile";
  EXPECT_EQ(
      *Converted(checkpoint, convert_options("bf16")).file->metadata().get_string("tokenizer.chat_template"),
      "from\nfile");
}

TEST(ChatTemplateTest, NamedOnes) {
  TestCheckpoint checkpoint = with_tokenizer();
  checkpoint.files["tokenizer_config.json"] =
      R"({"chat_template": [{"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]})";
  const Converted converted(checkpoint, convert_options("bf16"));
  EXPECT_EQ(*converted.file->metadata().get_string("tokenizer.chat_template"), "A");
  EXPECT_EQ(*converted.file->metadata().get_string("tokenizer.chat_template.tool_use"), "B");
  EXPECT_EQ((*converted.file->metadata().get_strings("tokenizer.chat_templates"))[0], "tool_use");
}

TEST(SamplingKeysTest, FromGenerationConfig) {
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  checkpoint.files["generation_config.json"] = R"({"temperature": 0.25, "top_p": 0.5, "top_k": 20})";
  const Converted sampling(checkpoint, convert_options("bf16"));
  EXPECT_EQ(*sampling.file->metadata().get_float("general.sampling.temp"), 0.25);
  EXPECT_EQ(*sampling.file->metadata().get_float("general.sampling.top_p"), 0.5);
  EXPECT_EQ(*sampling.file->metadata().get_int("general.sampling.top_k"), 20);
  checkpoint.files["generation_config.json"] = R"({"do_sample": false, "temperature": 0.25})";
  EXPECT_FALSE(Converted(checkpoint, convert_options("bf16")).file->metadata().has("general.sampling.temp"));
}

TEST(BadTextFilesTest, NamedErrors) {
  const auto failed = [](const std::string& file, const std::string& text) {
    TestCheckpoint checkpoint = with_tokenizer();
    checkpoint.files[file] = text;
    MemoryStorage storage;
    checkpoint.write(storage);
    return convert_in(storage, convert_options("bf16"));
  };
  EXPECT_TRUE(
      fails_with(failed("generation_config.json", "{"), Code::kCorrupt, "ckpt/generation_config.json"));
  EXPECT_TRUE(fails_with(failed("generation_config.json", R"({"top_k": "many"})"), Code::kCorrupt,
                         "top_k is \"many\""));
  EXPECT_TRUE(fails_with(failed("generation_config.json", R"({"eos_token_id": 600})"), Code::kCorrupt,
                         "eos_token_id is 600", "below 512"));
  EXPECT_TRUE(fails_with(failed("tokenizer_config.json", R"({"chat_template": [{"name": 1}]})"),
                         Code::kCorrupt, "chat_template"));
  EXPECT_TRUE(fails_with(failed("tokenizer_config.json", R"({"add_bos_token": 1})"), Code::kCorrupt,
                         "add_bos_token is 1"));
  EXPECT_TRUE(fails_with(failed("tokenizer.json", "{}"), Code::kCorrupt, "ckpt", "tokenizer.json"));
  EXPECT_TRUE(fails_with(failed("tokenizer.json", "[]"), Code::kCorrupt, "ckpt/tokenizer.json"));
  Json tokenizer = tiny_tokenizer();
  tokenizer["model"]["type"] = "WordPiece";
  EXPECT_TRUE(fails_with(failed("tokenizer.json", tokenizer.dump()), Code::kUnsupported, "WordPiece"));
  tokenizer = tiny_tokenizer();
  tokenizer["added_tokens"][0]["id"] = 700;  // the model has 512 rows
  EXPECT_TRUE(fails_with(failed("tokenizer.json", tokenizer.dump()), Code::kInvalidArgument, "700", "512"));
}

}  // namespace
}  // namespace forebay
