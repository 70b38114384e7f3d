#include "synth/vocabulary.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "tokenizer/byte_map.h"

namespace forebay::synth {
namespace {

using convert::Family;

struct Special {
  const char* text;
  TokenKind kind;
};
constexpr TokenKind kControl = TokenKind::kControl, kUser = TokenKind::kUserDefined;

constexpr Special kSpecials[] = {
    {"<|endoftext|>", kControl},
    {"<|im_start|>", kControl},
    {"<|im_end|>", kControl},
    {"<|object_ref_start|>", kControl},
    {"<|object_ref_end|>", kControl},
    {"<|box_start|>", kControl},
    {"<|box_end|>", kControl},
    {"<|quad_start|>", kControl},
    {"<|quad_end|>", kControl},
    {"<|vision_start|>", kControl},
    {"<|vision_end|>", kControl},
    {"<|vision_pad|>", kControl},
    {"<|image_pad|>", kControl},
    {"<|video_pad|>", kControl},
    {"<tool_call>", kUser},
    {"</tool_call>", kUser},
    {"<|fim_prefix|>", kUser},
    {"<|fim_middle|>", kUser},
    {"<|fim_suffix|>", kUser},
    {"<|fim_pad|>", kUser},
    {"<|repo_name|>", kUser},
    {"<|file_sep|>", kUser},
    {"<tool_response>", kUser},
    {"</tool_response>", kUser},
    {"<think>", kUser},
    {"</think>", kUser},
};
/// qwen35 has seven more control tokens, for audio.
constexpr Special kAudioSpecials[] = {
    {"<|audio_start|>", kControl}, {"<|audio_end|>", kControl},  {"<tts_pad>", kControl},
    {"<tts_text_bos>", kControl},  {"<tts_text_eod>", kControl}, {"<tts_text_bos_single>", kControl},
    {"<|audio_pad|>", kControl},
};

/// The published vocabularies: tokens before the control tokens, and merges.
struct Published {
  uint64_t n_vocab, n_normal, n_merges;
};
constexpr Published kQwen2 = {151936, 151643, 151387};
constexpr Published kQwen35 = {248320, 248044, 247587};

/// Grows a vocabulary by merges until it is full. Strings are in the byte alphabet.
class MergeList {
 public:
  MergeList(Vocabulary& vocabulary, uint64_t n_tokens, uint64_t n_merges)
      : vocabulary_(vocabulary), n_tokens_(n_tokens), n_merges_(n_merges) {
    known_.reserve(n_tokens);
    for (const std::string& token : vocabulary.tokens) known_.insert(token);
  }

  bool is_full() const { return vocabulary_.tokens.size() >= n_tokens_; }

  /// A token of two known ones. Past the last merge the tokens still come: published vocabularies have some
  /// that no merge makes.
  void add(const std::string& left, const std::string& right) {
    if (is_full() || !known_.contains(left) || !known_.contains(right)) return;
    if (!known_.insert(left + right).second) return;
    vocabulary_.tokens.push_back(left + right);
    vocabulary_.kinds.push_back(TokenKind::kNormal);
    if (vocabulary_.merges.size() < n_merges_) vocabulary_.merges.push_back(left + ' ' + right);
  }

 private:
  Vocabulary& vocabulary_;
  const uint64_t n_tokens_, n_merges_;
  std::unordered_set<std::string> known_;
};

/// Pairs (i, j) of ranks below n, those of small sum first: pairs of frequent things are frequent.
template <typename F>
void for_pairs_by_sum(size_t n, F use) {
  for (size_t sum = 0; sum + 1 < 2 * n; ++sum)
    for (size_t i = sum < n ? 0 : sum - n + 1; i <= std::min(sum, n - 1); ++i) use(i, sum - i);
}

/// Characters of UTF-8 from `first` on, merged from their bytes: all leading parts, then all wholes.
void add_characters(MergeList& merges, int n_bytes, int first_lead, int last_lead) {
  const auto byte = [](int value) { return to_byte_alphabet(std::string(1, static_cast<char>(value))); };
  for (int lead = first_lead; lead <= last_lead; ++lead)
    for (int second = 0x80; second < 0xc0; ++second) merges.add(byte(lead), byte(second));
  if (n_bytes == 2) return;
  for (int lead = first_lead; lead <= last_lead; ++lead)
    for (int second = 0x80; second < 0xc0; ++second)
      for (int third = 0x80; third < 0xc0; ++third) merges.add(byte(lead) + byte(second), byte(third));
}

/// Letters in the order of their frequency in English text.
constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvkjxqz";

void add_merges(MergeList& merges) {
  const std::string space = to_byte_alphabet(" "), newline = to_byte_alphabet("\n");
  std::vector<std::string> letters, pairs, triples;
  for (const char c : kLetters) letters.emplace_back(1, c);

  merges.add(newline, newline);
  for (std::string run = space; run.size() < 16 * space.size(); run += run) merges.add(run, run);
  for_pairs_by_sum(letters.size(), [&](size_t i, size_t j) { pairs.push_back(letters[i] + letters[j]); });
  for_pairs_by_sum(letters.size(), [&](size_t i, size_t j) { merges.add(letters[i], letters[j]); });
  for (const std::string& letter : letters) merges.add(space, letter);
  for (char c = 'A'; c <= 'Z'; ++c) merges.add(space, std::string(1, c));
  for (const std::string& pair : pairs) merges.add(space, pair);
  add_characters(merges, 2, 0xc3, 0xdf);  // Latin with accents to Arabic
  add_characters(merges, 3, 0xe3, 0xe9);  // kana and the common Han characters
  for (const std::string& pair : pairs)
    for (const std::string& letter : letters) triples.push_back(pair + letter);
  for (size_t i = 0; i < pairs.size(); ++i)
    for (const std::string& letter : letters) merges.add(pairs[i], letter);
  for (const std::string& triple : triples) merges.add(space, triple);
  for_pairs_by_sum(pairs.size(), [&](size_t i, size_t j) { merges.add(pairs[i], pairs[j]); });
}

}  // namespace

Result<Vocabulary> make_vocabulary(Family family, uint64_t n_vocab) {
  const bool is_qwen35 = family == Family::kQwen35Moe || family == Family::kQwen4Exp;
  std::vector<Special> specials(std::begin(kSpecials), std::end(kSpecials));
  if (is_qwen35) specials.insert(specials.end(), std::begin(kAudioSpecials), std::end(kAudioSpecials));

  Published size = is_qwen35 ? kQwen35 : kQwen2;
  if (n_vocab != size.n_vocab) size = {n_vocab, n_vocab - specials.size(), n_vocab};
  constexpr uint64_t kMaxVocab = 1 << 19;  // what the merges below reach
  if (n_vocab < 256 + specials.size() || n_vocab > kMaxVocab)
    return Error{Code::kInvalidArgument,
                 fmt::format("vocabulary: {} tokens, wanted {} (bytes and control tokens) to {}", n_vocab,
                             256 + specials.size(), kMaxVocab)};

  Vocabulary v;
  v.pre = is_qwen35 ? "qwen35" : "qwen2";
  v.tokens.reserve(n_vocab);
  // The published order of the bytes is that of their characters.
  std::array<uint32_t, 256> characters{};
  for (int byte = 0; byte < 256; ++byte) characters[byte] = character_of_byte(static_cast<uint8_t>(byte));
  std::array<int, 256> bytes{};
  for (int byte = 0; byte < 256; ++byte) bytes[byte] = byte;
  std::ranges::sort(bytes, {}, [&](int byte) { return characters[byte]; });
  for (const int byte : bytes) v.tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  v.kinds.assign(v.tokens.size(), TokenKind::kNormal);
  MergeList merges(v, size.n_normal, size.n_merges);
  add_merges(merges);
  if (!merges.is_full())
    return Error{Code::kInternal,
                 fmt::format("vocabulary: {} tokens made, {} wanted", v.tokens.size(), size.n_normal)};

  for (const Special& special : specials) {
    v.tokens.emplace_back(special.text);
    v.kinds.push_back(special.kind);
  }
  while (v.tokens.size() < n_vocab) {
    v.tokens.push_back(fmt::format("[PAD{}]", v.tokens.size()));
    v.kinds.push_back(TokenKind::kUnused);
  }
  const auto id_of = [&](std::string_view text) {
    return static_cast<TokenId>(std::ranges::find(v.tokens, text) - v.tokens.begin());
  };
  v.eos = id_of("<|im_end|>");
  v.pad = id_of(kDocumentEnd);
  v.bos = v.pad;
  return v;
}

}  // namespace forebay::synth
