#include "tokenizer/hf_vocabulary.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tokenizer/pre_tokenizer_rules.h"
#include "tokenizer/vocabulary_check.h"

namespace forebay {
namespace {

using Json = nlohmann::json;

// Far above any vocabulary: a wrong id must not allocate the machine.
constexpr int64_t kMaxTokens = 1 << 24;
// Messages quote values, and printing recurses.
constexpr int kMaxDepth = 32;

const Json& member(const Json& object, const char* name) {
  static const Json null;
  auto at = object.find(name);
  return at == object.end() ? null : *at;
}

bool is_set(const Json& value) {
  return !value.is_null() && value != Json(false) && value != Json("") && value != Json(0.0);
}

Error wrong(std::string_view what, const Json& value, std::string_view wanted) {
  std::string seen = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return Error{Code::kCorrupt,
               fmt::format("tokenizer.json: {} is {}, wanted {}", what, quote_text(seen), wanted)};
}

Error unsupported(std::string_view what, const Json& value, std::string_view wanted) {
  Error error = wrong(what, value, wanted);
  error.code = Code::kUnsupported;
  return error;
}

/// Fills `tokens` by id; -1 and gaps come later.
class TokenList {
 public:
  Result<void> put(std::string_view text, const Json& id, TokenKind kind) {
    if (!id.is_number_integer() || id < 0 || id >= kMaxTokens)
      return wrong(fmt::format("the id of {}", quote_text(text)), id, fmt::format("0 to {}", kMaxTokens - 1));
    size_t i = id.get<size_t>();
    if (i >= tokens_.size()) {
      tokens_.resize(i + 1);
      kinds_.resize(i + 1, TokenKind::kUnused);
    }
    bool taken = kinds_[i] != TokenKind::kUnused;
    if (taken && (tokens_[i] != text || kind == TokenKind::kNormal))
      return Error{Code::kCorrupt, fmt::format("tokenizer.json: id {} is both {} and {}", i,
                                               quote_text(tokens_[i]), quote_text(text))};
    tokens_[i] = text;
    kinds_[i] = kind;
    return {};
  }

  Result<void> finish(int n_vocab, Vocabulary& vocabulary) && {
    if (n_vocab != 0) {
      if (n_vocab < 0 || static_cast<size_t>(n_vocab) < tokens_.size())
        return Error{Code::kInvalidArgument,
                     fmt::format("tokenizer.json has tokens up to id {}, the model has {} rows",
                                 static_cast<int64_t>(tokens_.size()) - 1, n_vocab)};
      tokens_.resize(static_cast<size_t>(n_vocab));
      kinds_.resize(static_cast<size_t>(n_vocab), TokenKind::kUnused);
    }
    for (size_t id = 0; id < tokens_.size(); ++id)
      if (kinds_[id] == TokenKind::kUnused) tokens_[id] = fmt::format("[PAD{}]", id);
    vocabulary.tokens = std::move(tokens_);
    vocabulary.kinds = std::move(kinds_);
    return {};
  }

 private:
  std::vector<std::string> tokens_;
  std::vector<TokenKind> kinds_;  // kUnused: no token yet
};

Result<void> check_model(const Json& model) {
  if (!model.is_object()) return wrong("model", model, "an object");
  if (member(model, "type") != "BPE") return unsupported("model.type", member(model, "type"), "BPE");
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                           "byte_fallback", "unk_token"})
    if (is_set(member(model, name))) return unsupported(fmt::format("model.{}", name), model[name], "none");
  return {};
}

Result<void> read_vocab(const Json& vocab, TokenList& tokens) {
  if (!vocab.is_object()) return wrong("model.vocab", vocab, "an object of texts and ids");
  for (const auto& [text, id] : vocab.items()) TRY(tokens.put(text, id, TokenKind::kNormal));
  return {};
}

Result<void> read_added_tokens(const Json& added, TokenList& tokens) {
  if (added.is_null()) return {};
  if (!added.is_array()) return wrong("added_tokens", added, "an array");
  for (const Json& token : added) {
    if (!token.is_object() || !member(token, "content").is_string())
      return wrong("an added token", token, "an object with id and content");
    const auto& text = token["content"].get_ref<const std::string&>();
    for (const char* name : {"single_word", "lstrip", "rstrip"})
      if (is_set(member(token, name)))
        return unsupported(fmt::format("{} of added token {}", name, quote_text(text)), token[name], "false");
    bool special = is_set(member(token, "special"));
    TRY(tokens.put(text, member(token, "id"), special ? TokenKind::kControl : TokenKind::kUserDefined));
  }
  return {};
}

Result<std::vector<std::string>> read_merges(const Json& merges) {
  if (!merges.is_array()) return wrong("model.merges", merges, "an array");
  std::vector<std::string> lines;
  lines.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_string())
      lines.push_back(merge.get<std::string>());
    else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      lines.push_back(fmt::format("{} {}", merge[0].get_ref<const std::string&>(),
                                  merge[1].get_ref<const std::string&>()));
    else
      return wrong(fmt::format("merge {}", lines.size()), merge, "\"left right\" or [\"left\", \"right\"]");
  }
  return lines;
}

Result<bool> read_nfc(const Json& normalizer) {
  if (normalizer.is_null()) return false;
  if (normalizer.is_object() && member(normalizer, "type") == "NFC") return true;
  if (normalizer.is_object() && member(normalizer, "type") == "Sequence" &&
      member(normalizer, "normalizers").is_array()) {
    bool nfc = false;
    for (const Json& step : normalizer["normalizers"]) nfc = TRY(read_nfc(step)) || nfc;
    return nfc;
  }
  return unsupported("normalizer", normalizer, "NFC or none");
}

Result<void> read_pattern(const Json& step, std::vector<std::string>& patterns) {
  const Json& type = member(step, "type");
  if (type == "Split") {
    const Json& regex = member(member(step, "pattern"), "Regex");
    if (!regex.is_string() || member(step, "behavior") != "Isolated" || is_set(member(step, "invert")))
      return unsupported("a Split pre-tokenizer", step, "an isolated regular expression");
    patterns.push_back(regex.get<std::string>());
  } else if (type == "Digits") {
    if (!is_set(member(step, "individual_digits")))
      return unsupported("a Digits pre-tokenizer", step, "individual digits");
    patterns.emplace_back(kSingleDigitPattern);
  } else if (type == "ByteLevel") {
    if (is_set(member(step, "add_prefix_space")))
      return unsupported("a ByteLevel pre-tokenizer", step, "no prefix space");
    // HF's default is true.
    if (member(step, "use_regex") != Json(false)) patterns.emplace_back(kGpt2Pattern);
  } else {
    return unsupported("a pre-tokenizer", step, "Split, Digits or ByteLevel");
  }
  return {};
}

Result<std::string> find_pre(const Json& pre_tokenizer) {
  std::vector<std::string> patterns;
  if (member(pre_tokenizer, "type") == "Sequence" && member(pre_tokenizer, "pretokenizers").is_array()) {
    for (const Json& step : pre_tokenizer["pretokenizers"]) TRY(read_pattern(step, patterns));
  } else {
    TRY(read_pattern(pre_tokenizer, patterns));
  }
  const PreTokenizerRules* rules = find_rules_by_patterns(patterns);
  if (rules == nullptr) return unsupported("pre_tokenizer", pre_tokenizer, "the patterns of a known family");
  return std::string(rules->name);
}

Result<Vocabulary> read(const Json& root, const HfVocabularyOptions& options) {
  if (!root.is_object()) return Error{Code::kCorrupt, "tokenizer.json is not a JSON object"};
  const Json& model = member(root, "model");
  TRY(check_model(model));

  Vocabulary vocabulary;
  vocabulary.pre = options.pre.empty() ? TRY(find_pre(member(root, "pre_tokenizer"))) : options.pre;
  const PreTokenizerRules* rules = TRY(find_pre_tokenizer_rules(vocabulary.pre));
  if (is_set(member(model, "ignore_merges")) != rules->whole_pieces)
    return unsupported(fmt::format("model.ignore_merges with pre-tokenizer '{}'", vocabulary.pre),
                       member(model, "ignore_merges"), rules->whole_pieces ? "true" : "false");
  vocabulary.nfc = TRY(read_nfc(member(root, "normalizer")));

  TokenList tokens;
  TRY(read_vocab(member(model, "vocab"), tokens));
  TRY(read_added_tokens(member(root, "added_tokens"), tokens));
  TRY(std::move(tokens).finish(options.n_vocab, vocabulary));
  vocabulary.merges = TRY(read_merges(member(model, "merges")));
  return vocabulary;
}

}  // namespace

Result<Vocabulary> vocabulary_from_hf_json(std::string_view tokenizer_json,
                                           const HfVocabularyOptions& options) {
  try {
    bool too_deep = false;
    auto watch_depth = [&](int depth, Json::parse_event_t, const Json&) {
      too_deep = too_deep || depth > kMaxDepth;
      return !too_deep;
    };
    Json root = Json::parse(tokenizer_json, watch_depth);
    if (too_deep)
      return Error{Code::kCorrupt, fmt::format("tokenizer.json: nested more than {} levels deep", kMaxDepth)};
    return read(root, options);
  } catch (const Json::exception& error) {
    return Error{Code::kCorrupt, fmt::format("tokenizer.json: {}", error.what())};
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("tokenizer.json of {} bytes", tokenizer_json.size())};
  }
}

}  // namespace forebay
