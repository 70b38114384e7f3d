#include "constrain/number_range.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace forebay {
namespace {

constexpr size_t kMaxWholeDigits = 18;
constexpr size_t kMaxLooseDigits = 9;  // before the point, where a fraction may follow
constexpr size_t kMaxFraction = 6;

/// A non-negative number, written out.
struct Decimal {
  std::string whole;     // no leading zeros but for "0"
  std::string fraction;  // no trailing zeros
  bool excluded = false;
};

struct Bound {
  bool negative = false;
  Decimal size;
};

bool is_zero(const Decimal& d) {
  return d.whole == "0" && d.fraction.empty();
}

Result<Bound> written_out(const nlohmann::ordered_json& number, bool excluded) {
  std::string text = number.dump();
  Bound bound;
  bound.size.excluded = excluded;
  if (text[0] == '-') {
    bound.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const size_t e = text.find('e'); e != std::string::npos) {
    exponent = std::stoi(text.substr(e + 1));
    text.resize(e);
  }
  size_t point = text.find('.');
  if (point == std::string::npos) point = text.size();
  std::string digits = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  const long place = static_cast<long>(point) + exponent;  // of the point in `digits`
  if (place > static_cast<long>(kMaxWholeDigits))
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: more than {} digits before the point", number.dump(), kMaxWholeDigits)};
  if (place <= 0) digits.insert(0, std::string(static_cast<size_t>(std::min(1 - place, 400L)), '0'));
  const auto n_whole = static_cast<size_t>(std::max(place, 1L));
  if (digits.size() < n_whole) digits.append(n_whole - digits.size(), '0');
  bound.size.whole = digits.substr(0, n_whole);
  bound.size.fraction = digits.substr(n_whole);
  bound.size.whole.erase(0, std::min(bound.size.whole.find_first_not_of('0'), n_whole - 1));
  while (bound.size.fraction.ends_with('0')) bound.size.fraction.pop_back();
  if (is_zero(bound.size)) bound.negative = false;
  return bound;
}

/// Sizes between two decimals, from one node to another.
class SizeRange {
 public:
  SizeRange(Grammar& grammar, bool integer, NodeId end) : grammar_(grammar), integer_(integer), end_(end) {}

  void add(NodeId from, const Decimal& low, const std::optional<Decimal>& high) {
    low_ = low;
    high_ = high;
    const size_t most = std::max(integer_ ? kMaxWholeDigits : kMaxLooseDigits, low.whole.size());
    const size_t longest = high ? high->whole.size() : most;
    for (size_t n = low.whole.size(); n <= longest; ++n) {
      const bool at_low = n == low.whole.size(), at_high = high && n == longest;
      whole(from, 0, n, at_low, at_high);
    }
  }

 private:
  /// Digit i of n before the point; at_low: all digits so far are the low bound's.
  void whole(NodeId from, size_t i, size_t n, bool at_low, bool at_high) {
    if (i == n) return point(from, at_low, at_high);
    if (!at_low && !at_high) return free_whole(from, i, n);
    const char first = std::max(at_low ? low_.whole[i] : '0', i == 0 && n > 1 ? '1' : '0');
    const char last = at_high ? high_->whole[i] : '9';
    branch(from, first, last, at_low ? low_.whole[i] : 0, at_high ? high_->whole[i] : 0,
           [&](NodeId next, bool low, bool high) { whole(next, i + 1, n, low, high); });
  }

  /// Digits first to last; those that equal a bound's go their own way.
  template <typename Go>
  void branch(NodeId from, char first, char last, char low, char high, Go go) {
    NodeId between = -1;
    for (char digit = first; digit <= last; ++digit) {
      const bool at_low = digit == low, at_high = digit == high;
      if (!at_low && !at_high) {
        if (between < 0) {
          between = grammar_.add_node();
          go(between, false, false);
        }
        grammar_.add_range(from, static_cast<uint8_t>(digit), static_cast<uint8_t>(digit), between);
        continue;
      }
      const NodeId next = grammar_.add_node();
      grammar_.add_range(from, static_cast<uint8_t>(digit), static_cast<uint8_t>(digit), next);
      go(next, at_low, at_high);
    }
  }

  void free_whole(NodeId from, size_t i, size_t n) {
    for (; i < n; ++i) {
      const NodeId next = grammar_.add_node();
      grammar_.add_range(from, i == 0 && n > 1 ? '1' : '0', '9', next);
      from = next;
    }
    point(from, false, false);
  }

  /// Whether the number may end here, `rest` being what follows in the bounds' fractions.
  bool may_end(bool at_low, bool at_high, size_t i) const {
    const bool low_zero = low_.fraction.size() <= i;  // the bound is what has been read
    if (at_low && (!low_zero || low_.excluded)) return false;
    return !(at_high && high_->excluded && high_->fraction.size() <= i);
  }

  void point(NodeId from, bool at_low, bool at_high) {
    if (may_end(at_low, at_high, 0)) grammar_.add_empty(from, end_);
    if (integer_) return;
    const NodeId next = grammar_.add_node();
    grammar_.add_literal(from, ".", next);
    fraction(next, 0, at_low, at_high);
  }

  void fraction(NodeId from, size_t i, bool at_low, bool at_high) {
    if (i == kMaxFraction) return;
    const auto digit = [&](const Decimal& d) { return i < d.fraction.size() ? d.fraction[i] : '0'; };
    const char low = at_low ? digit(low_) : 0, high = at_high ? digit(*high_) : 0;
    branch(from, at_low ? low : '0', at_high ? high : '9', low, high, [&](NodeId next, bool l, bool h) {
      if (may_end(l, h, i + 1)) grammar_.add_empty(next, end_);
      fraction(next, i + 1, l, h);
    });
  }

  Grammar& grammar_;
  const bool integer_;
  const NodeId end_;
  Decimal low_;
  std::optional<Decimal> high_;
};

}  // namespace

Result<RuleId> add_number_range(Grammar& grammar, const NumberBounds& bounds, bool integer) {
  const RuleId rule = grammar.add_rule();
  const auto [start, end] = grammar.rule(rule);
  std::optional<Bound> min, max;
  if (bounds.min) min = TRY(written_out(*bounds.min, bounds.min_excluded));
  if (bounds.max) max = TRY(written_out(*bounds.max, bounds.max_excluded));
  SizeRange sizes(grammar, integer, end);
  const Decimal zero{.whole = "0", .fraction = {}};
  if (!max || !max->negative) {
    const bool from_zero = !min || min->negative;
    const auto high = max ? std::optional(max->size) : std::nullopt;
    sizes.add(start, from_zero ? zero : min->size, high);
  }
  if (!min || min->negative) {
    const NodeId minus = grammar.add_node();
    grammar.add_literal(start, "-", minus);
    // Zero has no sign.
    Decimal low = zero;
    low.excluded = true;
    if (max && max->negative) low = max->size;
    const auto high = min ? std::optional(min->size) : std::nullopt;
    sizes.add(minus, low, high);
  }
  return rule;
}

}  // namespace forebay
