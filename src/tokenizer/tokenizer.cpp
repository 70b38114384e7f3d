#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/nfc.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_bytes.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary_check.h"

namespace forebay {
namespace {

// Texts that end a turn or a generation in the vocabularies in use, whatever the file names as eos.
constexpr std::string_view kStopTexts[] = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>",  "<|eom_id|>",    "<|end_of_text|>",
    "<|end|>",    "<end_of_turn>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",
};

bool is_control(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

AddedTokens collect_added(const Vocabulary& vocabulary, bool with_control) {
  std::vector<AddedTokens::Token> added;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    TokenKind kind = vocabulary.kinds[id];
    if (kind == TokenKind::kUserDefined || (with_control && is_control(kind)))
      added.push_back({vocabulary.tokens[id], static_cast<TokenId>(id)});
  }
  return AddedTokens(std::move(added));
}

std::vector<TokenId> collect_stops(const Vocabulary& vocabulary, const AddedTokens& added) {
  std::vector<TokenId> stops;
  if (vocabulary.eos) stops.push_back(*vocabulary.eos);
  for (std::string_view text : kStopTexts) {
    std::optional<TokenId> id = added.id_of(text);
    if (id && std::ranges::find(stops, *id) == stops.end()) stops.push_back(*id);
  }
  return stops;
}

// Whole pieces that are tokens, for vocabularies whose merges do not reach all of them.
using WholePieces = std::unordered_map<std::string_view, TokenId>;

WholePieces collect_whole_pieces(const Vocabulary& vocabulary, const TokenBytes& bytes) {
  WholePieces whole;
  whole.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.kinds[id] == TokenKind::kNormal)
      whole.emplace(bytes.of(static_cast<TokenId>(id)), static_cast<TokenId>(id));
  return whole;
}

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  TokenBytes bytes;
  AddedTokens all_added;     // control, unknown and user-defined
  AddedTokens user_defined;  // what is matched even when special parsing is off
  PreTokenizer pre_tokenizer;
  std::optional<NfcNormalizer> nfc;  // where this vocabulary wants it
  Bpe bpe;
  WholePieces whole_pieces;  // views of `bytes`; empty unless the rules ask for it
  std::vector<TokenId> stops;

  // One call's working memory.
  struct Work {
    std::vector<TokenId> ids;
    PieceCache cache;
    BpeScratch scratch;
    std::string normalized;
  };

  void encode_piece(std::string_view piece, Work& work) const {
    if (piece.size() > PieceCache::kMaxPieceBytes) {
      encode_uncached(piece, work);
      return;
    }
    uint64_t hash = PieceCache::hash_of(piece);
    if (auto known = work.cache.find(piece, hash)) {
      work.ids.insert(work.ids.end(), known->begin(), known->end());
      return;
    }
    size_t n_before = work.ids.size();
    encode_uncached(piece, work);
    work.cache.insert(piece, hash, std::span(work.ids).subspan(n_before));
  }

  void encode_uncached(std::string_view piece, Work& work) const {
    if (auto whole = whole_pieces.find(piece); whole != whole_pieces.end())
      work.ids.push_back(whole->second);
    else
      bpe.encode(piece, work.scratch, work.ids);
  }

  void encode_segment(std::string_view text, bool normalize, Work& work) const {
    if (nfc && normalize) text = nfc->normalize(text, work.normalized);
    pre_tokenizer.split(text, [&](std::string_view piece) { encode_piece(piece, work); });
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(Vocabulary vocabulary) {
  const PreTokenizerRules* rules = TRY(find_pre_tokenizer_rules(vocabulary.pre));
  CheckedVocabulary checked = TRY(check_vocabulary(vocabulary));
  TokenBytes bytes = TRY(TokenBytes::create(vocabulary));
  PreTokenizer pre_tokenizer = TRY(PreTokenizer::create(*rules));
  std::optional<NfcNormalizer> nfc;
  if (vocabulary.nfc.value_or(rules->nfc)) nfc = TRY(NfcNormalizer::create());

  AddedTokens all_added = collect_added(vocabulary, true);
  AddedTokens user_defined = collect_added(vocabulary, false);
  std::vector<TokenId> stops = collect_stops(vocabulary, all_added);
  Bpe bpe(checked.merges, checked.byte_tokens);
  std::unique_ptr<Impl> impl(new Impl{std::move(vocabulary),
                                      std::move(bytes),
                                      std::move(all_added),
                                      std::move(user_defined),
                                      std::move(pre_tokenizer),
                                      std::move(nfc),
                                      std::move(bpe),
                                      {},
                                      std::move(stops)});
  if (rules->whole_pieces) impl->whole_pieces = collect_whole_pieces(impl->vocabulary, impl->bytes);
  return Tokenizer(std::move(impl));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string replaced;
  if (utf8::valid_prefix_bytes(text) != text.size()) {
    utf8::append_replaced(replaced, text);
    text = replaced;
  }
  const AddedTokens& added = options.parse_special ? impl_->all_added : impl_->user_defined;
  Impl::Work work;
  for (size_t at = 0; at < text.size();) {
    std::optional<AddedTokens::Match> match = added.find(text, at);
    size_t end = match ? match->offset : text.size();
    if (end > at) impl_->encode_segment(text.substr(at, end - at), options.nfc, work);
    if (match) work.ids.push_back(match->id);
    at = end + (match ? match->n_bytes : 0);
  }
  return std::move(work.ids);
}

std::string_view Tokenizer::token_bytes(TokenId id, bool specials) const {
  if (id < 0 || id >= n_tokens()) return {};
  if (is_control(kind(id)) && !specials) return {};
  return impl_->bytes.of(id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool specials) const {
  std::string text;
  for (TokenId id : ids) text += token_bytes(id, specials);
  return text;
}

int Tokenizer::n_tokens() const {
  return static_cast<int>(impl_->vocabulary.tokens.size());
}

TokenKind Tokenizer::kind(TokenId id) const {
  if (id < 0 || id >= n_tokens()) return TokenKind::kUnused;
  return impl_->vocabulary.kinds[static_cast<size_t>(id)];
}

std::optional<TokenId> Tokenizer::find_special(std::string_view text) const {
  return impl_->all_added.id_of(text);
}
std::optional<TokenId> Tokenizer::bos() const {
  return impl_->vocabulary.bos;
}
std::optional<TokenId> Tokenizer::eos() const {
  return impl_->vocabulary.eos;
}
// Without a bos there is nothing to add, whatever the flag says.
bool Tokenizer::add_bos() const {
  return impl_->vocabulary.add_bos && impl_->vocabulary.bos.has_value();
}
std::span<const TokenId> Tokenizer::stop_ids() const {
  return impl_->stops;
}
bool Tokenizer::is_stop(TokenId id) const {
  return std::ranges::find(impl_->stops, id) != impl_->stops.end();
}
const Vocabulary& Tokenizer::vocabulary() const {
  return impl_->vocabulary;
}

}  // namespace forebay
