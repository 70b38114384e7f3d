// T1 and T2: sums with the answer backwards, and three-digit arithmetic with the steps written out.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "train/tasks/all_tasks.h"
#include "train/tasks/draws.h"

namespace forebay::train {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "07+85=" -> "290": three digits, ones first, so that a carry is known before it is needed.
class AddBackwards : public Task {
 public:
  std::string_view name() const override { return "add-2d"; }
  std::string alphabet() const override { return "0123456789+="; }
  int64_t max_answer_bytes() const override { return 3; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      const int64_t a = draws.between(0, 99), b = draws.between(0, 99);
      std::string answer = fmt::format("{:03}", a + b);
      std::ranges::reverse(answer);
      return Item{.prompt = fmt::format("{:02}+{:02}=", a, b), .answer = answer, .key = answer};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    return {.reward = answer == item.key ? 1.0 : 0.0,
            .format = answer.size() == 3 && is_digits(answer) ? 1.0 : 0.0};
  }
};

/// The place values of a number, largest first, without zeros: 407 -> 400, 7.
std::vector<int64_t> places(int64_t n) {
  std::vector<int64_t> parts;
  for (int64_t unit = 100; unit >= 1; unit /= 10)
    if (const int64_t part = n / unit % 10 * unit; part != 0) parts.push_back(part);
  return parts;
}

/// "358*4=" -> "300*4=1200;50*4=200;1200+200=1400;8*4=32;1400+32=1432;1432". Only what follows the last
/// semicolon counts: how it is reached is the model's business.
class ArithmeticWithSteps : public Task {
 public:
  std::string_view name() const override { return "arithmetic-3d"; }
  std::string alphabet() const override { return "0123456789+-*=;"; }
  int64_t max_answer_bytes() const override { return 96; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      const char op = "+-*"[draws.between(0, 2)];
      const int64_t a = draws.between(100, 999);
      const int64_t b = op == '*' ? draws.between(2, 9) : draws.between(100, 999);
      return Item{.prompt = fmt::format("{}{}{}=", a, op, b),
                  .answer = steps(op, a, b),
                  .key = std::to_string(op == '+'   ? a + b
                                        : op == '-' ? a - b
                                                    : a * b)};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    const size_t cut = answer.rfind(';');
    const std::string_view result = cut == std::string_view::npos ? answer : answer.substr(cut + 1);
    const std::string_view digits = result.starts_with('-') ? result.substr(1) : result;
    return {.reward = result == item.key ? 1.0 : 0.0, .format = is_digits(digits) ? 1.0 : 0.0};
  }

 private:
  static std::string steps(char op, int64_t a, int64_t b) {
    std::string text;
    int64_t result = op == '*' ? 0 : a;
    for (const int64_t part : places(op == '*' ? a : b)) {
      if (op == '*') {
        text += fmt::format("{}*{}={};", part, b, part * b);
        if (result != 0) text += fmt::format("{}+{}={};", result, part * b, result + part * b);
        result += part * b;
      } else {
        const int64_t next = op == '+' ? result + part : result - part;
        text += fmt::format("{}{}{}={};", result, op, part, next);
        result = next;
      }
    }
    return text + std::to_string(result);
  }
};

}  // namespace

std::unique_ptr<Task> make_add_task() {
  return std::make_unique<AddBackwards>();
}
std::unique_ptr<Task> make_arithmetic_task() {
  return std::make_unique<ArithmeticWithSteps>();
}

}  // namespace forebay::train
