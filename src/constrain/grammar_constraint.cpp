#include "constrain/grammar_constraint.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Masks that are kept; at 250,000 tokens each takes 31 KB.
constexpr size_t kMaxMasks = 1024;

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar,
                                     std::shared_ptr<const TokenIndex> index, const Tokenizer& tokenizer)
    : index_(std::move(index)),
      tokenizer_(tokenizer),
      automaton_(std::move(grammar)),
      state_(automaton_.start()),
      path_(index_->max_depth() + 1) {}

GrammarConstraint::Mask GrammarConstraint::compute(StateId state, int64_t max_distance) {
  Mask mask;
  mask.allowed.assign((index_->n_tokens() + 63) / 64, 0);
  const auto allow = [&](TokenId id, StateId after) {
    const int64_t distance = automaton_.distance(after);
    if (distance > max_distance) return;
    mask.allowed[id / 64] |= uint64_t{1} << (id % 64);
    mask.max_distance = std::max(mask.max_distance, distance);
  };
  const auto nodes = index_->nodes();
  const auto tokens = index_->tokens();
  path_[0] = state;
  for (size_t i = 0; i < nodes.size();) {
    const TokenIndex::Node& node = nodes[i];
    const StateId next = automaton_.next(path_[node.depth - 1], node.byte);
    if (next == Automaton::kDead) {
      i = node.skip;
      continue;
    }
    path_[node.depth] = next;
    const uint32_t first = i == 0 ? 0 : nodes[i - 1].token_end;
    for (uint32_t t = first; t < node.token_end; ++t) allow(tokens[t], next);
    ++i;
  }
  for (const TokenId id : automaton_.specials(state))
    if (const StateId next = automaton_.next_special(state, id); next != Automaton::kDead) allow(id, next);
  if (automaton_.accepting(state))
    for (const TokenId id : index_->stop_ids()) mask.allowed[id / 64] |= uint64_t{1} << (id % 64);
  return mask;
}

const GrammarConstraint::Mask& GrammarConstraint::mask_of(StateId state) {
  if (const auto found = masks_.find(state); found != masks_.end()) return found->second;
  if (masks_.size() >= kMaxMasks) masks_.clear();
  return masks_.emplace(state, compute(state, Grammar::kUnreachable - 1)).first->second;
}

void GrammarConstraint::mask(std::span<float> logits) {
  const Mask* mask = &mask_of(state_);
  Mask tight;
  if (tokens_left_ >= 0 && mask->max_distance > tokens_left_ - 1) {
    // Never less than the shortest way to an end, even where the limit cannot be kept.
    tight = compute(state_, std::max(tokens_left_ - 1, automaton_.distance(state_) - 1));
    mask = &tight;
  }
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool known = id / 64 < mask->allowed.size();
    if (known && id % 64 == 0 && ~mask->allowed[id / 64] == 0) {
      id += 63;
      continue;
    }
    if (!known || !(mask->allowed[id / 64] >> (id % 64) & 1)) logits[id] = kExcluded;
  }
}

void GrammarConstraint::move_to(StateId state) {
  bool trimmed = false;
  state_ = automaton_.trim(state, trimmed);
  if (trimmed) masks_.clear();
}

bool GrammarConstraint::accept_bytes(std::string_view bytes) {
  StateId state = state_;
  for (const char c : bytes) {
    state = automaton_.next(state, static_cast<uint8_t>(c));
    if (state == Automaton::kDead) return false;
  }
  move_to(state);
  return true;
}

Result<void> GrammarConstraint::accept(int32_t token) {
  const auto refuse = [&] {
    return Error{Code::kInvalidArgument,
                 fmt::format("token {}: not one that the constraint allows here", token)};
  };
  if (token < 0 || token >= index_->n_tokens()) return refuse();
  if (index_->is_stop(token)) {
    if (!complete()) return refuse();
    return {};
  }
  if (index_->is_text(token)) {
    if (!accept_bytes(tokenizer_.token_bytes(token))) return refuse();
    return {};
  }
  const StateId next = automaton_.next_special(state_, token);
  if (next == Automaton::kDead) return refuse();
  move_to(next);
  return {};
}

}  // namespace forebay
