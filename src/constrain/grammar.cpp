#include "constrain/grammar.h"

#include <algorithm>
#include <queue>

#include <fmt/format.h>

namespace forebay {

RuleId Grammar::add_rule() {
  const NodeId start = add_node();
  const NodeId end = add_node();
  is_end_[end] = true;
  rules_.push_back({start, end});
  return static_cast<RuleId>(rules_.size()) - 1;
}

NodeId Grammar::add_node() {
  nodes_.emplace_back();
  is_end_.push_back(false);
  return static_cast<NodeId>(nodes_.size()) - 1;
}

void Grammar::add_range(NodeId from, uint8_t lo, uint8_t hi, NodeId to) {
  nodes_[from].push_back({.kind = GrammarEdge::Kind::kRange, .lo = lo, .hi = hi, .next = to});
}

void Grammar::add_special(NodeId from, int32_t token, NodeId to) {
  nodes_[from].push_back({.kind = GrammarEdge::Kind::kSpecial, .target = token, .next = to});
}

void Grammar::add_empty(NodeId from, NodeId to) {
  nodes_[from].push_back({.kind = GrammarEdge::Kind::kEmpty, .next = to});
}

void Grammar::add_call(NodeId from, RuleId rule, NodeId to) {
  nodes_[from].push_back({.kind = GrammarEdge::Kind::kCall, .target = rule, .next = to});
}

void Grammar::add_literal(NodeId from, std::string_view bytes, NodeId to) {
  if (bytes.empty()) return add_empty(from, to);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const NodeId next = i + 1 == bytes.size() ? to : add_node();
    const auto byte = static_cast<uint8_t>(bytes[i]);
    add_range(from, byte, byte, next);
    from = next;
  }
}

void Grammar::add_characters(NodeId from, const std::vector<CodePointRange>& ranges, NodeId to) {
  for (const CodePointRange& range : ranges)
    for (const auto& sequence : utf8_sequences(range.lo, range.hi)) {
      NodeId at = from;
      for (size_t i = 0; i < sequence.size(); ++i) {
        const NodeId next = i + 1 == sequence.size() ? to : add_node();
        add_range(at, sequence[i].first, sequence[i].second, next);
        at = next;
      }
    }
}

/// Shortest derivations, by Knuth's generalisation of Dijkstra's algorithm (1977): a node is settled in order
/// of its distance, and then those that wait for it are looked at again.
Result<void> Grammar::finish() {
  if (too_large())
    return Error{Code::kInvalidArgument, fmt::format("too large: more than {} states", kMaxNodes)};
  const size_t n = nodes_.size();
  std::vector<std::vector<NodeId>> dependents(n);
  for (size_t node = 0; node < n; ++node)
    for (const GrammarEdge& edge : nodes_[node]) {
      dependents[edge.next].push_back(static_cast<NodeId>(node));
      if (edge.kind == GrammarEdge::Kind::kCall)
        dependents[rules_[edge.target].start].push_back(static_cast<NodeId>(node));
    }

  distance_.assign(n, kUnreachable);
  using Item = std::pair<int64_t, NodeId>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  for (const GrammarRule& rule : rules_) {
    distance_[rule.end] = 0;
    queue.emplace(0, rule.end);
  }
  while (!queue.empty()) {
    const auto [settled, id] = queue.top();
    queue.pop();
    if (settled > distance_[id]) continue;
    for (const NodeId node : dependents[id])
      for (const GrammarEdge& edge : nodes_[node]) {
        int64_t cost = distance_[edge.next];
        if (edge.kind == GrammarEdge::Kind::kRange || edge.kind == GrammarEdge::Kind::kSpecial) cost += 1;
        if (edge.kind == GrammarEdge::Kind::kCall) cost += distance_[rules_[edge.target].start];
        if (cost >= std::min(distance_[node], kUnreachable)) continue;
        distance_[node] = cost;
        queue.emplace(cost, node);
      }
  }
  if (distance_[rules_[0].start] == kUnreachable)
    return Error{Code::kInvalidArgument, "no finite value fits it"};
  return {};
}

namespace {

constexpr uint32_t kSurrogateFirst = 0xd800;
constexpr uint32_t kSurrogateLast = 0xdfff;
constexpr uint32_t kLastCodePoint = 0x10ffff;

int encode(uint32_t c, uint8_t* bytes) {
  if (c < 0x80) {
    bytes[0] = static_cast<uint8_t>(c);
    return 1;
  }
  const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (int i = n - 1; i > 0; --i, c >>= 6) bytes[i] = static_cast<uint8_t>(0x80 | (c & 0x3f));
  bytes[0] = static_cast<uint8_t>(((0xf00 >> n) & 0xff) | c);
  return n;
}

}  // namespace

std::vector<std::vector<std::pair<uint8_t, uint8_t>>> utf8_sequences(uint32_t lo, uint32_t hi) {
  std::vector<std::vector<std::pair<uint8_t, uint8_t>>> sequences;
  std::vector<CodePointRange> work = {{lo, std::min(hi, kLastCodePoint)}};
  while (!work.empty()) {
    const CodePointRange range = work.back();
    work.pop_back();
    if (range.lo > range.hi) continue;
    const auto split_at = [&](uint32_t last) {  // into lo..last and the rest
      work.push_back({last + 1, range.hi});
      work.push_back({range.lo, last});
    };
    if (range.lo <= kSurrogateLast && range.hi >= kSurrogateFirst) {
      work.push_back({kSurrogateLast + 1, range.hi});
      if (range.lo < kSurrogateFirst) work.push_back({range.lo, kSurrogateFirst - 1});
      continue;
    }
    bool split = false;
    for (const uint32_t last : {0x7fu, 0x7ffu, 0xffffu})
      if (!split && range.lo <= last && last < range.hi) {
        split_at(last);
        split = true;
      }
    // Where a byte but the first differs, it has to take all of its values.
    for (int shift = 6; !split && shift <= 18 && range.hi >= 0x80; shift += 6) {
      const uint32_t mask = (1u << shift) - 1;
      if ((range.lo & ~mask) == (range.hi & ~mask)) continue;
      if ((range.lo & mask) != 0) {
        split_at(range.lo | mask);
        split = true;
      } else if ((range.hi & mask) != mask) {
        split_at((range.hi & ~mask) - 1);
        split = true;
      }
    }
    if (split) continue;
    uint8_t first[4], last[4];
    const int n = encode(range.lo, first);
    encode(range.hi, last);
    auto& sequence = sequences.emplace_back();
    for (int i = 0; i < n; ++i) sequence.emplace_back(first[i], last[i]);
  }
  return sequences;
}

}  // namespace forebay
