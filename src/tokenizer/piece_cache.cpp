#include "tokenizer/piece_cache.h"

#include <cstring>

namespace forebay {
namespace {

constexpr size_t kFirstSlots = 256;
constexpr size_t kMaxSlots = 1 << 18;  // half of them used: 6 MB of slots, about 3 MB of bytes and ids
// Text made to collide costs lookups, not a scan of the table.
constexpr size_t kMaxProbes = 16;

}  // namespace

PieceCache::PieceCache() : slots_(kFirstSlots) {}

uint64_t PieceCache::hash_of(std::string_view piece) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t hash = piece.size() * kOdd;
  auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 29;
  };
  const char* at = piece.data();
  size_t left = piece.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, at, left);
  mix(rest);
  return hash;
}

std::optional<std::span<const TokenId>> PieceCache::find(std::string_view piece, uint64_t hash) const {
  size_t mask = slots_.size() - 1;
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    const Slot& slot = slots_[(hash + probe) & mask];
    if (slot.n_bytes == 0) return std::nullopt;
    if (slot.hash == hash && slot.n_bytes == piece.size() &&
        std::memcmp(bytes_.data() + slot.first_byte, piece.data(), piece.size()) == 0)
      return std::span(ids_).subspan(slot.first_id, slot.n_ids);
  }
  return std::nullopt;
}

void PieceCache::insert(std::string_view piece, uint64_t hash, std::span<const TokenId> ids) {
  if (n_used_ * 2 >= slots_.size()) grow();
  size_t mask = slots_.size() - 1;
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    Slot& slot = slots_[(hash + probe) & mask];
    if (slot.n_bytes != 0) continue;
    slot = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(ids_.size()),
            static_cast<uint16_t>(piece.size()), static_cast<uint16_t>(ids.size())};
    bytes_.append(piece);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++n_used_;
    return;
  }
}

void PieceCache::grow() {
  if (slots_.size() >= kMaxSlots) {
    clear();
    return;
  }
  std::vector<Slot> old(slots_.size() * 4);
  old.swap(slots_);
  n_used_ = 0;
  size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.n_bytes == 0) continue;
    for (size_t probe = 0; probe < kMaxProbes; ++probe) {
      Slot& free = slots_[(slot.hash + probe) & mask];
      if (free.n_bytes != 0) continue;
      free = slot;
      ++n_used_;
      break;
    }
  }
}

void PieceCache::clear() {
  slots_.assign(slots_.size(), Slot{});
  n_used_ = 0;
  bytes_.clear();
  ids_.clear();
}

}  // namespace forebay
