// Text into tokens and back, and tokenizer.json files. The first byte says which: an even one reads the rest
// as text, an odd one as a tokenizer.json.
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/hf_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace forebay {
namespace {

constexpr std::string_view kPres[] = {"qwen2", "qwen35", "smollm", "gpt-2", "llama-bpe"};

/// All bytes, some merges of merges, and literal tokens that overlap.
Vocabulary small_vocabulary(std::string_view pre) {
  Vocabulary vocabulary;
  vocabulary.pre = pre;
  auto add = [&](std::string text, TokenKind kind) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.kinds.push_back(kind);
  };
  for (int byte = 0; byte < 256; ++byte)
    add(to_byte_alphabet(std::string(1, static_cast<char>(byte))), TokenKind::kNormal);
  for (auto [left, right] :
       {std::pair{"Ġ", "Ġ"}, {"ĠĠ", "ĠĠ"}, {"t", "h"}, {"th", "e"}, {"Ġ", "the"}, {"e", "e"}, {"Ċ", "Ċ"}}) {
    add(std::string(left) + right, TokenKind::kNormal);
    vocabulary.merges.push_back(std::string(left) + " " + right);
  }
  add("<|im_end|>", TokenKind::kControl);
  add("<|im", TokenKind::kControl);
  add("<think>", TokenKind::kUserDefined);
  add("[PAD266]", TokenKind::kUnused);
  vocabulary.eos = 263;
  return vocabulary;
}

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> made;
    for (std::string_view pre : kPres) made.push_back(Tokenizer::create(small_vocabulary(pre)).value());
    return made;
  }();
  return all;
}

void check_text(const Tokenizer& tokenizer, std::string_view bytes) {
  std::string text;
  utf8::append_replaced(text, bytes);
  FUZZ_ASSERT(utf8::valid_prefix_bytes(text) == text.size());
  for (bool parse_special : {true, false}) {
    auto ids = tokenizer.encode(bytes, {.parse_special = parse_special, .nfc = false});
    FUZZ_ASSERT(tokenizer.decode(ids, true) == text);
    for (TokenId id : ids) FUZZ_ASSERT(tokenizer.kind(id) != TokenKind::kUnused);

    ids = tokenizer.encode(bytes, {.parse_special = parse_special});
    StreamDecoder decoder(tokenizer, true);
    std::string streamed;
    for (TokenId id : ids) {
      std::string part = decoder.push(id);
      FUZZ_ASSERT(utf8::valid_prefix_bytes(part) == part.size());
      streamed += part;
    }
    FUZZ_ASSERT(streamed == tokenizer.decode(ids, true));
    FUZZ_ASSERT(decoder.finish().empty());
  }
}

void check_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  StreamDecoder decoder(tokenizer);
  std::string streamed, replaced;
  std::vector<TokenId> ids;
  for (char byte : bytes) {
    ids.push_back(static_cast<uint8_t>(byte) + 12);  // past the last id, too
    std::string part = decoder.push(ids.back());
    FUZZ_ASSERT(utf8::valid_prefix_bytes(part) == part.size());
    streamed += part;
  }
  utf8::append_replaced(replaced, tokenizer.decode(ids));
  FUZZ_ASSERT(streamed + decoder.finish() == replaced);
}

void check_json(std::string_view json) {
  auto vocabulary = vocabulary_from_hf_json(json);
  if (!vocabulary) {
    FUZZ_ASSERT(!vocabulary.error().message.empty());
    FUZZ_ASSERT(vocabulary.error().message.find('\n') == std::string::npos);
    return;
  }
  auto tokenizer = Tokenizer::create(*vocabulary);
  if (!tokenizer) {
    FUZZ_ASSERT(tokenizer.error().message.find('\n') == std::string::npos);
    return;
  }
  tokenizer->encode("the quick <|im_end|> \u00E9e\u0301 12\n");
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    forebay::check_json(rest);
  } else {
    const auto& tokenizer = forebay::tokenizers()[data[0] / 2 % std::size(forebay::kPres)];
    forebay::check_text(tokenizer, rest);
    forebay::check_ids(tokenizer, rest);
  }
  return 0;
}

FuzzSeeds fuzz_seeds() {
  std::string json =
      R"({"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]},"added_tokens":[{"id":4,"content":"<|im_end|>","special":true}],)"
      R"("model":{"type":"BPE","vocab":{"t":0,"h":1,"th":2,"e":3},"merges":["t h",["th","e"]]}})";
  FuzzSeeds seeds;
  seeds.inputs = {std::string("\1") + json,
                  std::string("\1") + "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}"};
  for (char pre = 0; pre < 10; pre += 2) {
    seeds.inputs.push_back(
        pre + std::string("the  theee <|im_end|><think>\n\n I'm 42 \u00E9e\u0301 \u65E5\u672C \u0E01\u0E33"));
    seeds.inputs.push_back(pre + std::string("\xF0\x9F\x98\x80\xF0\x9F\x98 \xE2\x82 \xFF <|im<|im_end|"));
  }
  seeds.tokens = {"<|im_end|>", "<|im",     "<think>",    "the",    "'s",
                  "\r\n",       "  ",       "\xC2\xA0",   "\u3000", "\u0301\u0323",
                  "\u1161",     "\u11A8",   "\uAC00",     "\u3099", "\U0001F600",
                  "\xF0\x9F",   "\xED\xA0", "\"merges\"", "[[",     "{}",
                  "null",       "-1",       "1e9",        "true",   "\"vocab\":{\"the\":5}"};
  return seeds;
}
