#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>

namespace forebay {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

uint64_t pair_key(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// For std::push_heap, which keeps the greatest in front.
bool later(const BpeScratch::Candidate& a, const BpeScratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

Bpe::Bpe(const std::vector<Merge>& merges, const std::array<TokenId, 256>& byte_tokens)
    : byte_tokens_(byte_tokens) {
  size_t n_slots = std::bit_ceil(std::max<size_t>(merges.size() * 2, 2));
  slots_.resize(n_slots);
  slot_shift_ = 64 - std::countr_zero(n_slots);
  merged_by_rank_.reserve(merges.size());
  for (const Merge& merge : merges) {
    auto& slot = const_cast<Slot&>(slot_of(merge.left, merge.right));
    if (slot.rank == kNoRank)
      slot = {pair_key(merge.left, merge.right), static_cast<uint32_t>(merged_by_rank_.size())};
    merged_by_rank_.push_back(merge.merged);
  }
}

const Bpe::Slot& Bpe::slot_of(TokenId left, TokenId right) const {
  uint64_t key = pair_key(left, right);
  // 2^64 / golden ratio: spreads neighbouring ids over the table.
  size_t at = key * 0x9E3779B97F4A7C15u >> slot_shift_;
  while (slots_[at].rank != kNoRank && slots_[at].pair != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  for (char c : piece) {
    TokenId id = byte_tokens_[static_cast<uint8_t>(c)];
    if (id == kNoToken) continue;
    auto here = static_cast<uint32_t>(symbols.size());
    symbols.push_back({id, here - 1, here + 1, kNoRank});  // the first has previous == kNone
  }
  if (symbols.empty()) return;
  symbols.back().next = kNone;

  auto update_pair = [&](uint32_t left) {
    BpeScratch::Symbol& symbol = symbols[left];
    symbol.pair_rank = symbol.next == kNone ? kNoRank : slot_of(symbol.id, symbols[symbol.next].id).rank;
    return symbol.pair_rank != kNoRank;
  };
  for (uint32_t left = 0; left < symbols.size(); ++left)
    if (update_pair(left)) heap.push_back({symbols[left].pair_rank, left});
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    auto [rank, left] = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    // Out of date when the left symbol was swallowed or either of the two has changed since: ranks name
    // pairs.
    if (symbols[left].pair_rank != rank) continue;
    BpeScratch::Symbol& symbol = symbols[left];
    BpeScratch::Symbol& swallowed = symbols[symbol.next];
    symbol.id = merged_by_rank_[rank];
    symbol.next = swallowed.next;
    swallowed.pair_rank = kNoRank;
    if (symbol.next != kNone) symbols[symbol.next].previous = left;
    for (uint32_t changed : {symbol.previous, left})
      if (changed != kNone && update_pair(changed)) {
        heap.push_back({symbols[changed].pair_rank, changed});
        std::push_heap(heap.begin(), heap.end(), later);
      }
  }
  for (uint32_t at = 0; at != kNone; at = symbols[at].next) out.push_back(symbols[at].id);
}

}  // namespace forebay
