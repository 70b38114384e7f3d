#include "constrain/token_index.h"

#include <algorithm>
#include <string_view>

namespace forebay {
namespace {

/// Longer tokens exist (runs of spaces, rules of dashes), but none that a constraint needs.
constexpr size_t kMaxBytes = 1024;

}  // namespace

TokenIndex::TokenIndex(const Tokenizer& tokenizer) : n_tokens_(tokenizer.n_tokens()) {
  stop_ids_.assign(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end());
  std::sort(stop_ids_.begin(), stop_ids_.end());
  is_text_.assign(n_tokens_, false);
  std::vector<std::pair<std::string_view, TokenId>> sorted;
  for (TokenId id = 0; id < n_tokens_; ++id) {
    const TokenKind kind = tokenizer.kind(id);
    if ((kind != TokenKind::kNormal && kind != TokenKind::kByte) || is_stop(id)) continue;
    const std::string_view bytes = tokenizer.token_bytes(id);
    if (bytes.empty() || bytes.size() > kMaxBytes) continue;
    is_text_[id] = true;
    sorted.emplace_back(bytes, id);
  }
  std::sort(sorted.begin(), sorted.end());

  std::vector<uint32_t> path;  // nodes from the root to the last token
  std::string_view last;
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].skip = static_cast<uint32_t>(nodes_.size());
  };
  for (const auto& [bytes, id] : sorted) {
    const size_t common =
        std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end()).first - bytes.begin();
    leave(common);
    for (size_t i = common; i < bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<uint8_t>(bytes[i]), static_cast<uint16_t>(i + 1), 0,
                        static_cast<uint32_t>(tokens_.size())});
    }
    tokens_.push_back(id);
    nodes_.back().token_end = static_cast<uint32_t>(tokens_.size());
    max_depth_ = std::max(max_depth_, static_cast<int>(bytes.size()));
    last = bytes;
  }
  leave(0);
}

bool TokenIndex::is_stop(TokenId id) const {
  return std::binary_search(stop_ids_.begin(), stop_ids_.end(), id);
}

}  // namespace forebay
