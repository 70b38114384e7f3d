#include <nlohmann/json.hpp>

#include "tokenizer/hf_vocabulary.h"
#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

nlohmann::json small_file() {
  nlohmann::json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  nlohmann::json split = {{"type", "Split"},
                          {"pattern", {{"Regex", kQwen2Pattern}}},
                          {"behavior", "Isolated"},
                          {"invert", false}};
  return {{"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
          {"added_tokens",
           {{{"id", 3}, {"content", "<|im_end|>"}, {"special", true}, {"lstrip", false}},
            {{"id", 5}, {"content", "<think>"}, {"special", false}}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
            {"merges", nlohmann::json::array({"a b"})},
            {"unk_token", nullptr}}}};
}

Result<Vocabulary> read(const nlohmann::json& file, const HfVocabularyOptions& options = {}) {
  return vocabulary_from_hf_json(file.dump(), options);
}

TEST(HfVocabulary, ReadsTokensKindsAndMerges) {
  auto vocabulary = read(small_file(), {.n_vocab = 8});
  ASSERT_OK(vocabulary);
  using enum TokenKind;
  EXPECT_EQ(vocabulary->pre, "qwen2");
  EXPECT_EQ(vocabulary->nfc, true);
  EXPECT_EQ(vocabulary->tokens, (std::vector<std::string>{"a", "b", "ab", "<|im_end|>", "[PAD4]", "<think>",
                                                          "[PAD6]", "[PAD7]"}));
  EXPECT_EQ(vocabulary->kinds, (std::vector<TokenKind>{kNormal, kNormal, kNormal, kControl, kUnused,
                                                       kUserDefined, kUnused, kUnused}));
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a b"});

  nlohmann::json file = small_file();
  file["model"]["merges"] = nlohmann::json::array({{"a", "b"}});
  file["normalizer"] = nullptr;
  vocabulary = read(file);
  ASSERT_OK(vocabulary);
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(vocabulary->nfc, false);
  EXPECT_EQ(vocabulary->tokens.size(), 6u);
}

TEST(HfVocabulary, ReadsThePebbleFile) {
  auto vocabulary = vocabulary_from_hf_json(read_test_file("pebble_tokenizer.json"), {.n_vocab = 12288});
  ASSERT_OK(vocabulary);
  EXPECT_EQ(vocabulary->pre, "qwen35");
  EXPECT_EQ(vocabulary->nfc, false);
  EXPECT_EQ(vocabulary->tokens.size(), 12288u);
  EXPECT_EQ(vocabulary->merges.size(), 12020u);
  EXPECT_EQ(vocabulary->merges[0], "Ġ Ġ");
  EXPECT_EQ(vocabulary->tokens[8], "</tool_response>");
  EXPECT_EQ(vocabulary->kinds[11], TokenKind::kControl);
  EXPECT_EQ(vocabulary->kinds[12], TokenKind::kNormal);
}

TEST(HfVocabulary, FindsThePreTokenizer) {
  nlohmann::json file = small_file();
  nlohmann::json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  nlohmann::json digits = {{"type", "Digits"}, {"individual_digits", true}};
  file["pre_tokenizer"] = byte_level;
  EXPECT_EQ(read(file)->pre, "gpt-2");
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level}}};
  EXPECT_EQ(read(file)->pre, "smollm");

  file["pre_tokenizer"] = nullptr;
  EXPECT_TRUE(fails_with(read(file), Code::kUnsupported, "pre-tokenizer"));
  EXPECT_EQ(read(file, {.pre = "qwen35"})->pre, "qwen35");
  EXPECT_TRUE(fails_with(read(file, {.pre = "nobody"}), Code::kUnsupported, "'nobody'", "qwen35"));
  file["pre_tokenizer"] = {{"type", "Metaspace"}};
  EXPECT_TRUE(fails_with(read(file), Code::kUnsupported, "Metaspace"));
  byte_level["add_prefix_space"] = true;
  file["pre_tokenizer"] = byte_level;
  EXPECT_TRUE(fails_with(read(file), Code::kUnsupported, "prefix space"));
  file = small_file();
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+";
  EXPECT_TRUE(fails_with(read(file), Code::kUnsupported, "known family"));
}

TEST(HfVocabulary, WholePieceModelsAndFamiliesMustAgree) {
  nlohmann::json file = small_file();
  file["model"]["ignore_merges"] = true;
  EXPECT_TRUE(fails_with(read(file), Code::kUnsupported, "ignore_merges", "qwen2"));
  EXPECT_OK(read(file, {.pre = "llama-bpe"}));
  EXPECT_TRUE(fails_with(read(small_file(), {.pre = "llama-bpe"}), Code::kUnsupported, "ignore_merges"));
}

TEST(HfVocabulary, RefusesWhatItWouldTokenizeDifferently) {
  auto with = [](auto change) {
    nlohmann::json file = small_file();
    change(file);
    return read(file);
  };
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["type"] = "Unigram"; }), Code::kUnsupported,
                         "Unigram", "BPE"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["byte_fallback"] = true; }),
                         Code::kUnsupported, "byte_fallback"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["dropout"] = 0.1; }), Code::kUnsupported,
                         "dropout"));
  EXPECT_OK(with([](nlohmann::json& f) { f["model"]["dropout"] = 0.0; }));
  EXPECT_OK(with([](nlohmann::json& f) { f["model"]["end_of_word_suffix"] = ""; }));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) {
                           f["normalizer"] = {{"type", "Lowercase"}};
                         }),
                         Code::kUnsupported, "normalizer"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["added_tokens"][0]["lstrip"] = true; }),
                         Code::kUnsupported, "lstrip", "<|im_end|>"));
}

TEST(HfVocabulary, NamesWhatIsBroken) {
  auto with = [](auto change) {
    nlohmann::json file = small_file();
    change(file);
    return read(file);
  };
  EXPECT_TRUE(fails_with(vocabulary_from_hf_json(""), Code::kCorrupt, "tokenizer.json"));
  EXPECT_TRUE(fails_with(vocabulary_from_hf_json("{\"model\": "), Code::kCorrupt, "tokenizer.json"));
  EXPECT_TRUE(fails_with(vocabulary_from_hf_json("[]"), Code::kCorrupt, "object"));
  EXPECT_TRUE(fails_with(vocabulary_from_hf_json("{}"), Code::kCorrupt, "model"));
  EXPECT_TRUE(
      fails_with(with([](nlohmann::json& f) { f["model"]["vocab"] = 5; }), Code::kCorrupt, "vocab", "5"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["vocab"]["c"] = -1; }), Code::kCorrupt,
                         "'c'", "-1"));
  EXPECT_TRUE(
      fails_with(with([](nlohmann::json& f) { f["model"]["vocab"]["c"] = "x"; }), Code::kCorrupt, "'c'"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["vocab"]["c"] = 4'000'000'000; }),
                         Code::kCorrupt, "4000000000"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["model"]["vocab"]["c"] = 2; }), Code::kCorrupt,
                         "id 2", "'ab'", "'c'"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["added_tokens"][0]["id"] = 1; }), Code::kCorrupt,
                         "id 1", "'b'"));
  EXPECT_TRUE(fails_with(with([](nlohmann::json& f) { f["added_tokens"][0].erase("id"); }), Code::kCorrupt,
                         "<|im_end|>"));
  EXPECT_TRUE(
      fails_with(with([](nlohmann::json& f) { f["added_tokens"] = "x"; }), Code::kCorrupt, "added_tokens"));
  EXPECT_TRUE(
      fails_with(with([](nlohmann::json& f) { f["model"]["merges"][0] = 7; }), Code::kCorrupt, "merge 0"));
  EXPECT_TRUE(fails_with(read(small_file(), {.n_vocab = 5}), Code::kInvalidArgument, "id 5", "5 rows"));
  std::string deep = "{\"model\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(fails_with(vocabulary_from_hf_json(deep), Code::kCorrupt, "nested"));
}

}  // namespace
}  // namespace forebay
