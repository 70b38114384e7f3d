// T5: three numbers and a target; any expression that uses each number once and gives the target is right.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/tasks/all_tasks.h"
#include "train/tasks/draws.h"
#include "train/tasks/expression.h"

namespace forebay::train {
namespace {

/// "3,7,25:4=" -> "25-3*7".
class Countdown : public Task {
 public:
  std::string_view name() const override { return "countdown"; }
  std::string alphabet() const override { return "0123456789,:=+-*/()"; }
  int64_t max_answer_bytes() const override { return 16; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      while (true) {
        std::array<int64_t, 3> numbers{};
        for (int64_t& n : numbers) n = draws.between(1, 25);
        const char first = "+-*/"[draws.between(0, 3)], second = "+-*/"[draws.between(0, 3)];
        const std::string answer =
            draws.between(0, 1) == 0
                ? fmt::format("({}{}{}){}{}", numbers[0], first, numbers[1], second, numbers[2])
                : fmt::format("{}{}({}{}{})", numbers[0], first, numbers[1], second, numbers[2]);
        const Result<Evaluated> value = evaluate(answer);
        if (!value || value->value.den != 1 || value->value.num < 1 || value->value.num > 200) continue;
        for (size_t i = 2; i > 0; --i)
          std::swap(numbers[i], numbers[static_cast<size_t>(draws.between(0, static_cast<int64_t>(i)))]);
        const std::string key = fmt::format("{}:{}", fmt::join(numbers, ","), value->value.num);
        return Item{.prompt = key + "=", .answer = answer, .key = key};
      }
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    const Result<Evaluated> value = evaluate(answer);
    if (!value) return {};
    std::vector<int64_t> wanted;
    int64_t n = 0;
    for (const char c : item.key) {
      if (c >= '0' && c <= '9') {
        n = n * 10 + (c - '0');
      } else {
        wanted.push_back(n);
        n = 0;
      }
    }
    std::vector<int64_t> used = value->numbers;
    std::ranges::sort(used);
    std::ranges::sort(wanted);
    return {.reward = used == wanted && value->value == Fraction{n, 1} ? 1.0 : 0.0, .format = 1.0};
  }
};

}  // namespace

std::unique_ptr<Task> make_countdown_task() {
  return std::make_unique<Countdown>();
}

}  // namespace forebay::train
