#include "constrain/json_rules.h"

#include <algorithm>
#include <map>

namespace forebay {
namespace {

constexpr int kMaxIndent = 16;
constexpr int kMaxIntegerDigits = 18;  // fits 64 bits
constexpr int kMaxFractionDigits = 12;
constexpr int kMaxExponentDigits = 2;  // stays finite with the digits before it

}  // namespace

const std::vector<CodePointRange>& plain_characters() {
  static const std::vector<CodePointRange> ranges = {
      {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x7e}, {0x80, 0x10ffff}};
  return ranges;
}

template <typename Build>
RuleId JsonRules::once(RuleId& rule, Build build) {
  if (rule >= 0) return rule;
  rule = grammar_.add_rule();
  const GrammarRule made = grammar_.rule(rule);
  build(made.start, made.end);
  return rule;
}

RuleId JsonRules::space() {
  return once(space_, [&](NodeId start, NodeId end) {
    grammar_.add_empty(start, end);
    grammar_.add_literal(start, " ", end);
    NodeId at = grammar_.add_node();
    grammar_.add_literal(start, "\n", at);
    for (int i = 0; i < kMaxIndent; ++i) {
      const NodeId next = grammar_.add_node();
      grammar_.add_empty(at, end);
      grammar_.add_literal(at, " ", next);
      at = next;
    }
    grammar_.add_empty(at, end);
  });
}

RuleId JsonRules::character() {
  return once(character_, [&](NodeId start, NodeId end) {
    grammar_.add_characters(start, plain_characters(), end);
    const NodeId escape = grammar_.add_node();
    grammar_.add_literal(start, "\\", escape);
    for (const char c : std::string_view("\"\\/bfnrt")) grammar_.add_literal(escape, {&c, 1}, end);

    const auto hex = [&](NodeId from, std::string_view digits, NodeId to) {
      for (const char c : digits) {
        grammar_.add_literal(from, {&c, 1}, to);
        if (c >= 'a') {
          const char upper = static_cast<char>(c - 'a' + 'A');
          grammar_.add_literal(from, {&upper, 1}, to);
        }
      }
    };
    constexpr std::string_view kAll = "0123456789abcdef";
    const auto chain = [&](NodeId from, int n, NodeId to) {
      for (int i = 0; i < n; ++i) {
        const NodeId next = i + 1 == n ? to : grammar_.add_node();
        hex(from, kAll, next);
        from = next;
      }
    };
    const NodeId unicode = grammar_.add_node();
    grammar_.add_literal(escape, "u", unicode);
    // Any but D800 to DFFF, or two of those that make one character.
    const NodeId three = grammar_.add_node();
    hex(unicode, "0123456789abcef", three);
    chain(three, 3, end);
    const NodeId d = grammar_.add_node();
    hex(unicode, "d", d);
    const NodeId low = grammar_.add_node();
    hex(d, "01234567", low);
    chain(low, 2, end);
    const NodeId high = grammar_.add_node(), second = grammar_.add_node(), second_d = grammar_.add_node(),
                 last = grammar_.add_node();
    hex(d, "89ab", high);
    chain(high, 2, second);
    grammar_.add_literal(second, "\\u", second_d);
    const NodeId second_high = grammar_.add_node();
    hex(second_d, "d", second_high);
    hex(second_high, "cdef", last);
    chain(last, 2, end);
  });
}

RuleId JsonRules::string() {
  return once(string_, [&](NodeId start, NodeId end) {
    const NodeId inside = grammar_.add_node();
    grammar_.add_literal(start, "\"", inside);
    grammar_.add_call(inside, character(), inside);
    grammar_.add_literal(inside, "\"", end);
  });
}

RuleId JsonRules::string_of_length(int64_t min, std::optional<int64_t> max) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  NodeId at = grammar_.add_node();
  grammar_.add_literal(start, "\"", at);
  const int64_t n = max ? *max : min;
  for (int64_t i = 0; i < n && !grammar_.too_large(); ++i) {
    const NodeId next = grammar_.add_node();
    if (i >= min) grammar_.add_literal(at, "\"", end);
    grammar_.add_call(at, character(), next);
    at = next;
  }
  if (!max) grammar_.add_call(at, character(), at);
  grammar_.add_literal(at, "\"", end);
  return rule;
}

RuleId JsonRules::integer() {
  return once(integer_, [&](NodeId start, NodeId end) {
    const NodeId sign = grammar_.add_node();
    grammar_.add_literal(start, "0", end);
    grammar_.add_literal(start, "-", sign);
    NodeId at = grammar_.add_node();
    grammar_.add_range(start, '1', '9', at);
    grammar_.add_range(sign, '1', '9', at);
    for (int i = 1; i < kMaxIntegerDigits; ++i) {
      const NodeId next = grammar_.add_node();
      grammar_.add_empty(at, end);
      grammar_.add_range(at, '0', '9', next);
      at = next;
    }
    grammar_.add_empty(at, end);
  });
}

RuleId JsonRules::number() {
  return once(number_, [&](NodeId start, NodeId end) {
    const auto digits = [&](NodeId from, int most, NodeId to) {
      for (int i = 0; i < most; ++i) {
        const NodeId next = grammar_.add_node();
        grammar_.add_range(from, '0', '9', next);
        grammar_.add_empty(next, to);
        from = next;
      }
    };
    const NodeId whole = grammar_.add_node(), point = grammar_.add_node(), fraction = grammar_.add_node(),
                 e = grammar_.add_node(), exponent = grammar_.add_node();
    grammar_.add_call(start, integer(), whole);
    grammar_.add_literal(start, "-0", whole);
    grammar_.add_empty(whole, end);
    grammar_.add_literal(whole, ".", point);
    digits(point, kMaxFractionDigits, fraction);
    grammar_.add_empty(fraction, end);
    for (const NodeId from : {whole, fraction})
      for (const char* letter : {"e", "E"}) grammar_.add_literal(from, letter, e);
    grammar_.add_empty(e, exponent);
    grammar_.add_literal(e, "+", exponent);
    grammar_.add_literal(e, "-", exponent);
    digits(exponent, kMaxExponentDigits, end);
  });
}

RuleId JsonRules::value() {
  if (value_ >= 0) return value_;
  value_ = grammar_.add_rule();  // known before its parts, which use it
  const auto [start, end] = grammar_.rule(value_);
  for (const char* word : {"true", "false", "null"}) grammar_.add_literal(start, word, end);
  grammar_.add_call(start, string(), end);
  grammar_.add_call(start, number(), end);
  grammar_.add_call(start, object(), end);
  grammar_.add_call(start, array(), end);
  return value_;
}

RuleId JsonRules::object() {
  if (object_ < 0) object_ = object_of({}, pair(other_name({}), value()));
  return object_;
}

RuleId JsonRules::array() {
  if (array_ < 0) array_ = array_of({}, value(), 0, std::nullopt);
  return array_;
}

RuleId JsonRules::literal(const nlohmann::ordered_json& value) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  grammar_.add_literal(start, value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                       end);
  return rule;
}

RuleId JsonRules::pair(RuleId name, RuleId value) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  const NodeId colon = grammar_.add_node(), before = grammar_.add_node();
  grammar_.add_call(start, name, colon);
  grammar_.add_literal(colon, ":", before);
  grammar_.add_call(before, value, end);
  const NodeId spaced = grammar_.add_node();
  grammar_.add_literal(before, " ", spaced);
  grammar_.add_call(spaced, value, end);
  return rule;
}

RuleId JsonRules::object_of(const std::vector<Member>& members, RuleId other) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  NodeId none = grammar_.add_node();  // no member so far
  NodeId some = grammar_.add_node();
  NodeId open = grammar_.add_node();
  grammar_.add_literal(start, "{", open);
  grammar_.add_call(open, space(), none);
  bool may_be_empty = true;
  const auto separator = [&](NodeId from) {
    const NodeId comma = grammar_.add_node(), next = grammar_.add_node();
    grammar_.add_literal(from, ",", comma);
    grammar_.add_call(comma, space(), next);
    return next;
  };
  for (const Member& member : members) {
    const NodeId next_some = grammar_.add_node();
    grammar_.add_call(separator(some), member.pair, next_some);
    if (none >= 0) grammar_.add_call(none, member.pair, next_some);
    if (member.required) {
      none = -1;
      may_be_empty = false;
    } else {
      grammar_.add_empty(some, next_some);
    }
    some = next_some;
  }
  if (other >= 0) {
    grammar_.add_call(separator(some), other, some);
    if (none >= 0) grammar_.add_call(none, other, some);
  }
  const NodeId closing = grammar_.add_node();
  grammar_.add_call(some, space(), closing);
  grammar_.add_literal(closing, "}", end);
  if (may_be_empty) grammar_.add_literal(open, "}", end);
  return rule;
}

RuleId JsonRules::array_of(const std::vector<RuleId>& first, RuleId rest, int64_t min,
                           std::optional<int64_t> max) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  const NodeId open = grammar_.add_node(), closing = grammar_.add_node();
  grammar_.add_literal(start, "[", open);
  if (min <= 0) grammar_.add_literal(open, "]", end);
  grammar_.add_literal(closing, "]", end);

  const auto n_first = static_cast<int64_t>(first.size());
  // Counted elements: all that have a rule or a number of their own.
  int64_t n_counted = std::max(n_first, min);
  if (max) n_counted = *max;
  if (rest < 0) n_counted = std::min(n_counted, n_first);
  NodeId before = grammar_.add_node();
  grammar_.add_call(open, space(), before);
  NodeId after = -1;
  for (int64_t i = 0; i < n_counted && !grammar_.too_large(); ++i) {
    after = grammar_.add_node();
    grammar_.add_call(before, i < n_first ? first[i] : rest, after);
    if (i + 1 >= min) grammar_.add_call(after, space(), closing);
    const NodeId comma = grammar_.add_node();
    before = grammar_.add_node();
    grammar_.add_literal(after, ",", comma);
    grammar_.add_call(comma, space(), before);
  }
  if (!max && rest >= 0) {
    const NodeId more = grammar_.add_node();
    grammar_.add_call(before, rest, more);
    grammar_.add_call(more, space(), closing);
    const NodeId comma = grammar_.add_node();
    grammar_.add_literal(more, ",", comma);
    grammar_.add_call(comma, space(), before);
  }
  return rule;
}

RuleId JsonRules::other_name(const std::vector<std::string>& taken) {
  const RuleId rule = grammar_.add_rule();
  const auto [start, end] = grammar_.rule(rule);
  const NodeId free = grammar_.add_node();
  grammar_.add_characters(free, plain_characters(), free);
  grammar_.add_literal(free, "\"", end);

  // A trie of the taken names' bytes; whatever leaves it is free. Names that need an escape cannot be spelled
  // here.
  struct Node {
    NodeId id;
    int n_missing;  // bytes to the end of a character
    std::map<uint8_t, size_t> children = {};
    bool taken = false;
  };
  std::vector<Node> trie = {{grammar_.add_node(), 0}};
  grammar_.add_literal(start, "\"", trie[0].id);
  for (const std::string& name : taken) {
    const auto needs_escape = [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == '"' || c == '\\'; };
    if (std::any_of(name.begin(), name.end(), needs_escape)) continue;
    size_t at = 0;
    for (const char c : name) {
      const auto byte = static_cast<uint8_t>(c);
      const auto child = trie[at].children.find(byte);
      if (child != trie[at].children.end()) {
        at = child->second;
        continue;
      }
      const int n_missing = trie[at].n_missing > 0 ? trie[at].n_missing - 1
                            : byte >= 0xf0         ? 3
                            : byte >= 0xe0         ? 2
                            : byte >= 0xc0         ? 1
                                                   : 0;
      trie[at].children[byte] = trie.size();
      at = trie.size();
      trie.push_back({grammar_.add_node(), n_missing});
    }
    trie[at].taken = true;
  }
  for (const Node& node : trie) {
    for (const auto& [byte, child] : node.children) grammar_.add_range(node.id, byte, byte, trie[child].id);
    if (node.n_missing > 0) continue;
    if (!node.taken) grammar_.add_literal(node.id, "\"", end);
    for (const CodePointRange& range : plain_characters())
      for (uint32_t c = range.lo; c <= std::min(range.hi, 0x7eu); ++c)
        if (!node.children.contains(static_cast<uint8_t>(c)))
          grammar_.add_range(node.id, static_cast<uint8_t>(c), static_cast<uint8_t>(c), free);
    // Where a name goes on with another character, only ASCII leaves it.
    if (node.children.empty() || node.children.rbegin()->first < 0x80)
      grammar_.add_characters(node.id, {{0x80, 0x10ffff}}, free);
  }
  return rule;
}

}  // namespace forebay
