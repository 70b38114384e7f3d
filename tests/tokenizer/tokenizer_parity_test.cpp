// 5,400 strings with the ids that HF `tokenizers` gives them (tools/make_tokenizer_fixtures.py).
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "replaced.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer_vocabularies.h"

namespace forebay {
namespace {

using Ids = std::vector<TokenId>;

struct Line {
  std::string bytes;  // as given to the tokenizer
  Ids qwen35, qwen2, smollm, raw, plain;
  std::vector<size_t> cuts_qwen35, cuts_qwen2, cuts_smollm;
};

std::string from_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (char c : text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<char>(bits >> n_bits & 0xFF));
  }
  return bytes;
}

const std::vector<Line>& lines() {
  static const std::vector<Line> all = [] {
    std::vector<Line> read;
    std::istringstream file(read_test_file("parity.jsonl"));
    for (std::string text; std::getline(file, text);) {
      auto json = nlohmann::json::parse(text);
      Line& line = read.emplace_back();
      line.bytes = json.contains("base64") ? from_base64(json["base64"].get<std::string>())
                                           : json["text"].get<std::string>();
      line.qwen35 = json["qwen35"].get<Ids>();
      line.qwen2 = json.value("qwen2", line.qwen35);
      line.smollm = json.value("smollm", line.qwen35);
      line.raw = json.value("raw", line.qwen35);
      line.plain = json.value("plain", line.qwen35);
      const auto& cuts = json["cuts"];
      bool equal = cuts.empty() || cuts[0].is_number();
      line.cuts_qwen35 = (equal ? cuts : cuts[0]).get<std::vector<size_t>>();
      line.cuts_qwen2 = (equal ? cuts : cuts[1]).get<std::vector<size_t>>();
      line.cuts_smollm = (equal ? cuts : cuts[2]).get<std::vector<size_t>>();
    }
    return read;
  }();
  return all;
}

void expect_ids(const Tokenizer& tokenizer, const EncodeOptions& options, Ids Line::*wanted) {
  ASSERT_GE(lines().size(), 5000u);
  for (const Line& line : lines())
    EXPECT_EQ(tokenizer.encode(line.bytes, options), line.*wanted) << testing::PrintToString(line.bytes);
}

void expect_cuts(std::string_view pre, std::vector<size_t> Line::*wanted) {
  PreTokenizer pre_tokenizer = PreTokenizer::create(**find_pre_tokenizer_rules(pre)).value();
  for (const Line& line : lines()) {
    std::vector<size_t> cuts;
    pre_tokenizer.split(replaced(line.bytes), [&](std::string_view piece) { cuts.push_back(piece.size()); });
    EXPECT_EQ(cuts, line.*wanted) << testing::PrintToString(line.bytes);
  }
}

TEST(Parity, Qwen35) {
  expect_ids(pebble_tokenizer("qwen35"), {}, &Line::qwen35);
}
TEST(Parity, Qwen2) {
  expect_ids(pebble_tokenizer("qwen2"), {}, &Line::qwen2);
}
TEST(Parity, Smollm) {
  expect_ids(pebble_tokenizer("smollm"), {}, &Line::smollm);
}
TEST(Parity, Qwen35WithoutNfc) {
  expect_ids(pebble_tokenizer("qwen35"), {.nfc = false}, &Line::raw);
}

TEST(Parity, AVocabularyMayDeclineNfc) {
  Vocabulary vocabulary = pebble_vocabulary("qwen35");
  vocabulary.nfc = false;
  expect_ids(Tokenizer::create(std::move(vocabulary)).value(), {}, &Line::raw);
}

TEST(Parity, ControlTokensAsText) {
  Vocabulary vocabulary = pebble_vocabulary("qwen35");
  for (size_t id = 3; id <= 8; ++id) vocabulary.kinds[id] = TokenKind::kUserDefined;
  expect_ids(Tokenizer::create(std::move(vocabulary)).value(), {.parse_special = false}, &Line::plain);
}

TEST(Parity, PiecesOfQwen35) {
  expect_cuts("qwen35", &Line::cuts_qwen35);
}
TEST(Parity, PiecesOfQwen2) {
  expect_cuts("qwen2", &Line::cuts_qwen2);
}
TEST(Parity, PiecesOfSmollm) {
  expect_cuts("smollm", &Line::cuts_smollm);
}

TEST(Parity, DecodingGivesTheNormalisedTextBack) {
  Tokenizer tokenizer = pebble_tokenizer("qwen35");
  NfcNormalizer nfc = NfcNormalizer::create().value();
  for (const Line& line : lines()) {
    std::string text = replaced(line.bytes), buffer;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line.bytes, {.nfc = false}), true), text);
    // Without control tokens in it, the text is one segment: normalised as a whole.
    EncodeOptions plain{.parse_special = false};
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line.bytes, plain)), nfc.normalize(text, buffer));
  }
}

}  // namespace
}  // namespace forebay
