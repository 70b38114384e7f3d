/// Vocabularies that several tests use.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "support/result_matchers.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/hf_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace forebay {

inline std::string read_test_file(const std::string& name) {
  std::ifstream file(std::string(FOREBAY_TEST_DATA) + "/tokenizer/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// 12,288 tokens of byte-level BPE; the first twelve are control tokens.
inline Vocabulary pebble_vocabulary(std::string_view pre = "qwen35") {
  static const Result<Vocabulary> vocabulary =
      vocabulary_from_hf_json(read_test_file("pebble_tokenizer.json"));
  EXPECT_OK(vocabulary);
  Vocabulary copy = *vocabulary;
  copy.pre = pre;
  copy.nfc.reset();  // the file says none; the families that its tests stand for do
  return copy;
}

inline Tokenizer pebble_tokenizer(std::string_view pre = "qwen35") {
  return Tokenizer::create(pebble_vocabulary(pre)).value();
}

/// The 256 bytes as ids 0 to 255, then one token per merge ("left right", mapped bytes), then the others.
struct ByteVocabulary {
  std::vector<std::string> merges = {};
  std::vector<std::string> control = {};
  std::vector<std::string> user_defined = {};
  std::string pre = "qwen35";

  Vocabulary build() const {
    Vocabulary vocabulary;
    vocabulary.pre = pre;
    auto add = [&](std::string text, TokenKind kind) {
      vocabulary.tokens.push_back(std::move(text));
      vocabulary.kinds.push_back(kind);
    };
    for (int byte = 0; byte < 256; ++byte)
      add(to_byte_alphabet(std::string(1, static_cast<char>(byte))), TokenKind::kNormal);
    for (const std::string& merge : merges) {
      std::string whole = merge;
      whole.erase(whole.find(' ', 1), 1);
      add(whole, TokenKind::kNormal);
    }
    for (const std::string& text : control) add(text, TokenKind::kControl);
    for (const std::string& text : user_defined) add(text, TokenKind::kUserDefined);
    vocabulary.merges = merges;
    return vocabulary;
  }
};

}  // namespace forebay
