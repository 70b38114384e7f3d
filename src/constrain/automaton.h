/// Runs a grammar on bytes: a pushdown automaton whose states (sets of stacks) get numbers and remembered
/// transitions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "constrain/grammar.h"

namespace forebay {

using StateId = int32_t;

/// Confined.
class Automaton {
 public:
  static constexpr StateId kDead = -1;
  /// Numbered states beyond this are forgotten at the next occasion (see trim).
  static constexpr size_t kMaxStates = 8192;

  /// Readings of one text that are followed; of more, some are given up. What is written stays valid: each
  /// reading alone can be brought to an end.
  static constexpr size_t kMaxStacks = 2048;

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  StateId start() const { return start_; }
  /// kDead: no text of the language goes on like this.
  StateId next(StateId state, uint8_t byte) {
    const StateId known = states_[state].next[byte];
    return known != kUnknown ? known : compute_next(state, byte);
  }
  StateId next_special(StateId state, int32_t token);
  /// Control tokens that may come next.
  std::vector<int32_t> specials(StateId state) const;
  /// What was read is a whole text of the language.
  bool accepting(StateId state) const { return states_[state].accepting; }
  /// Fewest bytes and control tokens until it is.
  int64_t distance(StateId state) const { return states_[state].distance; }

  /// Forgets all states but `state`, whose new number it returns, when there are too many; `trimmed` says so.
  StateId trim(StateId state, bool& trimmed);

 private:
  static constexpr StateId kUnknown = -2;
  using StackId = int32_t;
  static constexpr StackId kEmptyStack = -1;

  struct Stack {
    NodeId node;
    StackId below;
    int64_t distance;
  };
  struct State {
    std::vector<StackId> stacks;  // sorted; tops have edges that read something
    bool accepting = false;
    int64_t distance = Grammar::kUnreachable;
    std::array<StateId, 256> next;
  };

  StackId push(NodeId node, StackId below);
  void close(StackId stack, std::vector<StackId>& closed, bool& accepting);
  StateId intern(std::vector<StackId> stacks, bool accepting);
  StateId compute_next(StateId state, uint8_t byte);
  void begin();

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Stack> stacks_;
  std::unordered_map<uint64_t, StackId> stack_ids_;
  std::vector<State> states_;
  std::map<std::pair<bool, std::vector<StackId>>, StateId> state_ids_;
  StateId start_ = 0;
  std::vector<bool> visited_;  // by stack, all false between calls
  std::vector<StackId> work_;
};

}  // namespace forebay
