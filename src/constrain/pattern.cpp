#include "constrain/pattern.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace forebay {
namespace {

using Ranges = std::vector<CodePointRange>;

constexpr int kMaxRepeat = 1000;
constexpr int kMaxPatternDepth = 100;
constexpr uint32_t kLast = 0x10ffff;

const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

Ranges complement(Ranges ranges, uint32_t last) {
  std::sort(ranges.begin(), ranges.end(), [](auto a, auto b) { return a.lo < b.lo; });
  Ranges rest;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges) {
    if (range.lo > last) break;
    if (range.lo > next) rest.push_back({next, range.lo - 1});
    next = std::max(next, range.hi + 1);
  }
  if (next <= last) rest.push_back({next, last});
  return rest;
}

/// What a pattern says, before it is put into a grammar (repeats copy it).
struct Term {
  enum class Kind { kClass, kSequence, kChoice, kRepeat } kind;
  Ranges ranges;             // kClass
  std::vector<Term> inside;  // of the others; one for kRepeat
  int min = 0;
  int max = -1;  // -1: any number
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Term> parse() {
    // Anchors bind weaker than |, so each choice has its own; they are kept as marks at its ends.
    Term all = TRY(choice(0));
    if (at_ < text_.size()) return wrong("unexpected ')'");
    return all;
  }

 private:
  Error wrong(std::string_view what, Code code = Code::kInvalidArgument) const {
    return Error{code, fmt::format("{} at {}", what, at_)};
  }
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static Term anything() {
    Term dot{.kind = Term::Kind::kClass, .ranges = {{0, kLast}}, .inside = {}};
    Term repeat{.kind = Term::Kind::kRepeat, .ranges = {}, .inside = {std::move(dot)}};
    return repeat;
  }

  Result<Term> choice(int depth) {
    if (depth > kMaxPatternDepth) return wrong("too deep");
    Term term{.kind = Term::Kind::kChoice, .ranges = {}, .inside = {}};
    do {
      Term one = TRY(sequence(depth));
      term.inside.push_back(std::move(one));
    } while (take('|'));
    return term;
  }

  Result<Term> sequence(int depth) {
    Term term{.kind = Term::Kind::kSequence, .ranges = {}, .inside = {}};
    const bool outer = depth == 0;
    if (outer && !take('^')) term.inside.push_back(anything());
    bool ended = false;
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      if (text_[at_] == '$') {
        if (!outer || (at_ + 1 < text_.size() && text_[at_ + 1] != '|'))
          return wrong("'$' is read only at the end", Code::kUnsupported);
        ++at_;
        ended = true;
        break;
      }
      if (text_[at_] == '^') return wrong("'^' is read only at the start", Code::kUnsupported);
      Term one = TRY(atom(depth));
      Term repeated = TRY(repeat(std::move(one)));
      term.inside.push_back(std::move(repeated));
    }
    if (outer && !ended) term.inside.push_back(anything());
    return term;
  }

  Result<Term> repeat(Term one) {
    int min = 1, max = 1;
    if (take('*')) {
      min = 0, max = -1;
    } else if (take('+')) {
      max = -1;
    } else if (take('?')) {
      min = 0;
    } else if (more() && text_[at_] == '{') {
      ++at_;
      min = TRY(count());
      max = min;
      if (take(',')) {
        max = -1;
        if (more() && text_[at_] != '}') max = TRY(count());
      }
      if (!take('}')) return wrong("expected '}'");
      if (max >= 0 && max < min) return wrong("the counts are the wrong way round");
    } else {
      return one;
    }
    take('?');  // which of several readings is found first does not matter here
    if (more() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?'))
      return wrong("a repeat of a repeat");
    Term term{.kind = Term::Kind::kRepeat, .ranges = {}, .inside = {}, .min = min, .max = max};
    term.inside.push_back(std::move(one));
    return term;
  }

  Result<int> count() {
    int n = 0;
    const size_t first = at_;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9' && n <= kMaxRepeat)
      n = n * 10 + (text_[at_++] - '0');
    if (at_ == first) return wrong("expected a number");
    if (n > kMaxRepeat) return wrong(fmt::format("a repeat of more than {}", kMaxRepeat), Code::kUnsupported);
    return n;
  }

  Result<Term> atom(int depth) {
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      if (take('?')) {
        if (!take(':')) return wrong("only (?: is read of groups with (?", Code::kUnsupported);
      }
      Term inside = TRY(choice(depth + 1));
      if (!take(')')) return wrong("expected ')'");
      return inside;
    }
    if (c == '[') return character_class();
    if (c == '.') {
      ++at_;
      return Term{.kind = Term::Kind::kClass,
                  .ranges = complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, kLast),
                  .inside = {}};
    }
    if (c == '*' || c == '+' || c == '?' || c == '{') return wrong("nothing to repeat");
    if (c == '\\') {
      ++at_;
      Ranges ranges = TRY(escape());
      return Term{.kind = Term::Kind::kClass, .ranges = std::move(ranges), .inside = {}};
    }
    const uint32_t code = TRY(code_point());
    return Term{.kind = Term::Kind::kClass, .ranges = {{code, code}}, .inside = {}};
  }

  Result<uint32_t> code_point() {
    const auto byte = static_cast<uint8_t>(text_[at_]);
    const int n = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0;
    if (n == 0 || at_ + n > text_.size()) return wrong("not UTF-8");
    uint32_t code = n == 1 ? byte : byte & (0xff >> (n + 1));
    for (int i = 1; i < n; ++i) {
      const auto next = static_cast<uint8_t>(text_[at_ + i]);
      if ((next & 0xc0) != 0x80) return wrong("not UTF-8");
      code = code << 6 | (next & 0x3f);
    }
    at_ += n;
    return code;
  }

  Result<uint32_t> hex(int n) {
    uint32_t code = 0;
    for (int i = 0; i < n; ++i, ++at_) {
      if (!more() || !std::isxdigit(static_cast<unsigned char>(text_[at_])))
        return wrong("expected a hex digit");
      const char c = text_[at_];
      code = code * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return code;
  }

  /// Behind the backslash.
  Result<Ranges> escape() {
    if (!more()) return wrong("a lonely '\\'");
    const char c = text_[at_];
    if (std::string_view("bBkpP123456789").find(c) != std::string_view::npos)
      return wrong(fmt::format("'\\{}' is not read", c), Code::kUnsupported);
    ++at_;
    const auto one = [](uint32_t code) { return Ranges{{code, code}}; };
    switch (c) {
      case 'd':
        return kDigits;
      case 'w':
        return kWord;
      case 's':
        return kSpace;
      case 'D':
        return complement(kDigits, 0x7f);
      case 'W':
        return complement(kWord, 0x7f);
      case 'S':
        return complement(kSpace, 0x7f);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x': {
        const uint32_t code = TRY(hex(2));
        return one(code);
      }
      case 'u': {
        const uint32_t code = TRY(hex(4));
        return one(code);
      }
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(c)))
      return wrong(fmt::format("'\\{}' is not read", c), Code::kUnsupported);
    --at_;
    const uint32_t code = TRY(code_point());
    return one(code);
  }

  Result<Term> character_class() {
    ++at_;
    const bool negated = take('^');
    Ranges ranges;
    bool letters = false;  // it has \w or its like
    while (true) {
      if (!more()) return wrong("expected ']'");
      if (take(']')) break;
      Ranges low = TRY(class_member(letters));
      const bool single = low.size() == 1 && low[0].lo == low[0].hi;
      if (single && more() && text_[at_] == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const Ranges high = TRY(class_member(letters));
        if (high.size() != 1 || high[0].lo != high[0].hi || high[0].lo < low[0].lo)
          return wrong("a range of nothing");
        low[0].hi = high[0].hi;
      }
      ranges.insert(ranges.end(), low.begin(), low.end());
    }
    if (negated) ranges = complement(std::move(ranges), letters ? 0x7f : kLast);
    return Term{.kind = Term::Kind::kClass, .ranges = std::move(ranges), .inside = {}};
  }

  Result<Ranges> class_member(bool& letters) {
    if (!more()) return wrong("expected ']'");
    if (text_[at_] == '\\') {
      ++at_;
      if (more() && std::string_view("dwsDWS").find(text_[at_]) != std::string_view::npos) letters = true;
      if (take('b')) return Ranges{{'\b', '\b'}};
      return escape();
    }
    const uint32_t code = TRY(code_point());
    return Ranges{{code, code}};
  }

  std::string_view text_;
  size_t at_ = 0;
};

class Builder {
 public:
  Builder(Grammar& grammar, PatternText text) : grammar_(grammar), text_(text) {}

  void build(const Term& term, NodeId from, NodeId to) {
    if (grammar_.too_large()) return;
    switch (term.kind) {
      case Term::Kind::kClass:
        return add_class(term.ranges, from, to);
      case Term::Kind::kSequence:
        for (const Term& one : term.inside) {
          const NodeId next = grammar_.add_node();
          build(one, from, next);
          from = next;
        }
        return grammar_.add_empty(from, to);
      case Term::Kind::kChoice:
        for (const Term& one : term.inside) build(one, from, to);
        return;
      case Term::Kind::kRepeat:
        return repeat(term, from, to);
    }
  }

 private:
  void repeat(const Term& term, NodeId from, NodeId to) {
    for (int i = 0; i < term.min || i < term.max; ++i) {
      if (grammar_.too_large()) return;
      const NodeId next = grammar_.add_node();
      if (i >= term.min) grammar_.add_empty(from, to);
      build(term.inside[0], from, next);
      from = next;
    }
    if (term.max < 0) {
      const NodeId loop = grammar_.add_node();
      grammar_.add_empty(from, loop);
      const NodeId next = grammar_.add_node();
      build(term.inside[0], loop, next);
      grammar_.add_empty(next, loop);
      from = loop;
    }
    grammar_.add_empty(from, to);
  }

  void add_class(const Ranges& ranges, NodeId from, NodeId to) {
    if (text_ == PatternText::kPlain) return grammar_.add_characters(from, ranges, to);
    Ranges plain;
    for (const CodePointRange& range : ranges)
      for (const CodePointRange& allowed :
           {CodePointRange{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x7e}, {0x80, kLast}})
        if (std::max(range.lo, allowed.lo) <= std::min(range.hi, allowed.hi))
          plain.push_back({std::max(range.lo, allowed.lo), std::min(range.hi, allowed.hi)});
    grammar_.add_characters(from, plain, to);
    static constexpr std::pair<char, const char*> kEscapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"},
                                                                {'\r', "\\r"}, {'\t', "\\t"},  {'\f', "\\f"},
                                                                {'\b', "\\b"}};
    for (const auto& [c, spelled] : kEscapes) {
      const auto code = static_cast<uint32_t>(c);
      if (std::any_of(ranges.begin(), ranges.end(), [&](auto r) { return r.lo <= code && code <= r.hi; }))
        grammar_.add_literal(from, spelled, to);
    }
  }

  Grammar& grammar_;
  const PatternText text_;
};

}  // namespace

Result<RuleId> add_pattern(Grammar& grammar, std::string_view pattern, PatternText text) {
  const Term term = TRY(Parser(pattern).parse());
  const RuleId rule = grammar.add_rule();
  const auto [start, end] = grammar.rule(rule);
  Builder(grammar, text).build(term, start, end);
  return rule;
}

}  // namespace forebay
