#include "constrain/automaton.h"

#include <algorithm>

namespace forebay {

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  begin();
}

void Automaton::begin() {
  std::vector<StackId> closed;
  bool accepting = false;
  close(push(grammar_->rule(0).start, kEmptyStack), closed, accepting);
  start_ = intern(std::move(closed), accepting);
}

Automaton::StackId Automaton::push(NodeId node, StackId below) {
  const uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32) | static_cast<uint32_t>(below);
  const auto [found, fresh] = stack_ids_.try_emplace(key, static_cast<StackId>(stacks_.size()));
  if (fresh) {
    const int64_t rest = below == kEmptyStack ? 0 : stacks_[below].distance;
    stacks_.push_back({node, below, std::min(grammar_->distance(node) + rest, Grammar::kUnreachable)});
    visited_.push_back(false);
  }
  return found->second;
}

/// Follows what reads nothing: empty edges, calls, returns. Stacks that can never be emptied are left out.
void Automaton::close(StackId stack, std::vector<StackId>& closed, bool& accepting) {
  const size_t first = work_.size();
  const auto visit = [&](StackId id) {
    if (id == kEmptyStack) {
      accepting = true;
      return;
    }
    if (visited_[id] || stacks_[id].distance >= Grammar::kUnreachable) return;
    visited_[id] = true;
    work_.push_back(id);
  };
  visit(stack);
  for (size_t i = first; i < work_.size(); ++i) {
    const StackId id = work_[i];
    const auto [node, below, distance] = stacks_[id];
    if (grammar_->is_end(node)) {
      visit(below);
      continue;
    }
    bool reads = false;
    for (const GrammarEdge& edge : grammar_->edges(node)) {
      switch (edge.kind) {
        case GrammarEdge::Kind::kRange:
        case GrammarEdge::Kind::kSpecial:
          reads = true;
          break;
        case GrammarEdge::Kind::kEmpty:
          visit(push(edge.next, below));
          break;
        case GrammarEdge::Kind::kCall:
          // A call at the end of a rule returns to the caller's caller.
          visit(push(grammar_->rule(edge.target).start,
                     grammar_->is_end(edge.next) ? below : push(edge.next, below)));
          break;
      }
    }
    if (reads) closed.push_back(id);
  }
  for (size_t i = first; i < work_.size(); ++i) visited_[work_[i]] = false;
  work_.resize(first);
}

StateId Automaton::intern(std::vector<StackId> stacks, bool accepting) {
  if (stacks.empty() && !accepting) return kDead;
  std::sort(stacks.begin(), stacks.end());
  stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
  const auto [found, fresh] =
      state_ids_.try_emplace({accepting, std::move(stacks)}, static_cast<StateId>(states_.size()));
  if (fresh) {
    State& state = states_.emplace_back();
    state.stacks = found->first.second;
    state.accepting = accepting;
    state.next.fill(kUnknown);
    if (accepting) state.distance = 0;
    for (const StackId id : state.stacks) state.distance = std::min(state.distance, stacks_[id].distance);
  }
  return found->second;
}

StateId Automaton::compute_next(StateId state, uint8_t byte) {
  std::vector<StackId> closed;
  bool accepting = false;
  for (size_t i = 0; i < states_[state].stacks.size() && closed.size() < kMaxStacks; ++i) {
    const auto [node, below, distance] = stacks_[states_[state].stacks[i]];
    for (const GrammarEdge& edge : grammar_->edges(node))
      if (edge.kind == GrammarEdge::Kind::kRange && edge.lo <= byte && byte <= edge.hi)
        close(push(edge.next, below), closed, accepting);
  }
  const StateId next = intern(std::move(closed), accepting);
  states_[state].next[byte] = next;
  return next;
}

StateId Automaton::next_special(StateId state, int32_t token) {
  std::vector<StackId> closed;
  bool accepting = false;
  for (size_t i = 0; i < states_[state].stacks.size(); ++i) {
    const auto [node, below, distance] = stacks_[states_[state].stacks[i]];
    for (const GrammarEdge& edge : grammar_->edges(node))
      if (edge.kind == GrammarEdge::Kind::kSpecial && edge.target == token)
        close(push(edge.next, below), closed, accepting);
  }
  return intern(std::move(closed), accepting);
}

std::vector<int32_t> Automaton::specials(StateId state) const {
  std::vector<int32_t> tokens;
  for (const StackId id : states_[state].stacks)
    for (const GrammarEdge& edge : grammar_->edges(stacks_[id].node))
      if (edge.kind == GrammarEdge::Kind::kSpecial) tokens.push_back(edge.target);
  return tokens;
}

StateId Automaton::trim(StateId state, bool& trimmed) {
  trimmed = states_.size() > kMaxStates;
  if (!trimmed) return state;
  // The stacks of this state, bottom first, under new numbers.
  const State kept = states_[state];
  const std::vector<Stack> old = std::move(stacks_);
  stacks_.clear();
  stack_ids_.clear();
  states_.clear();
  state_ids_.clear();
  visited_.clear();
  begin();
  std::vector<StackId> stacks;
  for (StackId id : kept.stacks) {
    std::vector<NodeId> nodes;
    for (; id != kEmptyStack; id = old[id].below) nodes.push_back(old[id].node);
    StackId rebuilt = kEmptyStack;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) rebuilt = push(*node, rebuilt);
    stacks.push_back(rebuilt);
  }
  return intern(std::move(stacks), kept.accepting);
}

}  // namespace forebay
