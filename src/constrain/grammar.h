/// A language of byte strings as a recursive transition network: every rule is a small nondeterministic
/// automaton whose edges read a byte or a control token, or call a rule.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/result.h"

namespace forebay {

using NodeId = int32_t;
using RuleId = int32_t;

struct GrammarEdge {
  enum class Kind : uint8_t {
    kRange,    // one byte from lo to hi
    kSpecial,  // the control token `target`
    kEmpty,
    kCall,  // what rule `target` reads
  };
  Kind kind;
  uint8_t lo = 0;
  uint8_t hi = 0;
  int32_t target = 0;
  NodeId next = 0;
};

struct GrammarRule {
  NodeId start = 0;
  NodeId end = 0;  // has no edges
};

struct CodePointRange {
  uint32_t lo = 0;
  uint32_t hi = 0;  // included
};

/// Built node by node, then checked by finish(); afterwards immutable and thread-safe.
class Grammar {
 public:
  static constexpr int64_t kUnreachable = INT64_C(1) << 50;
  /// Nodes, so that no schema takes all memory.
  static constexpr size_t kMaxNodes = 400'000;

  RuleId add_rule();
  NodeId add_node();
  void add_range(NodeId from, uint8_t lo, uint8_t hi, NodeId to);
  void add_special(NodeId from, int32_t token, NodeId to);
  void add_empty(NodeId from, NodeId to);
  void add_call(NodeId from, RuleId rule, NodeId to);
  void add_literal(NodeId from, std::string_view bytes, NodeId to);
  /// One character of the ranges, as UTF-8; surrogates are left out.
  void add_characters(NodeId from, const std::vector<CodePointRange>& ranges, NodeId to);

  const GrammarRule& rule(RuleId id) const { return rules_[id]; }
  const std::vector<GrammarEdge>& edges(NodeId id) const { return nodes_[id]; }
  bool is_end(NodeId id) const { return is_end_[id]; }
  bool too_large() const { return nodes_.size() > kMaxNodes; }

  /// Computes distances. Errors: kInvalidArgument when the grammar is too large or rule 0 reads no finite
  /// text.
  Result<void> finish();
  /// Fewest bytes (and control tokens) from a node to the end of its rule; kUnreachable when there is no way.
  int64_t distance(NodeId id) const { return distance_[id]; }

 private:
  std::vector<std::vector<GrammarEdge>> nodes_;
  std::vector<bool> is_end_;
  std::vector<GrammarRule> rules_;
  std::vector<int64_t> distance_;
};

/// The byte sequences, as ranges per position, that spell the characters lo to hi in UTF-8.
std::vector<std::vector<std::pair<uint8_t, uint8_t>>> utf8_sequences(uint32_t lo, uint32_t hi);

}  // namespace forebay
