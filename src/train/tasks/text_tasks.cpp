// T3 and T4: lists put in order, brackets repaired, text copied with an edit.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/tasks/all_tasks.h"
#include "train/tasks/draws.h"

namespace forebay::train {
namespace {

Score exact(const Item& item, std::string_view answer, std::string_view allowed) {
  return {
      .reward = answer == item.key ? 1.0 : 0.0,
      .format = !answer.empty() && answer.find_first_not_of(allowed) == std::string_view::npos ? 1.0 : 0.0};
}

/// "r3,84,5=" reversed, "s..." sorted, "d..." without repeats (the first of each stays).
class Lists : public Task {
 public:
  std::string_view name() const override { return "lists"; }
  std::string alphabet() const override { return "0123456789,=rsd"; }
  int64_t max_answer_bytes() const override { return 20; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index, [](Draws& draws) {
      const char what = "rsd"[draws.between(0, 2)];
      std::vector<int64_t> list(static_cast<size_t>(draws.between(3, 7)));
      for (int64_t& n : list) n = draws.between(0, what == 'd' ? 5 : 99);
      const std::string prompt = fmt::format("{}{}=", what, fmt::join(list, ","));
      if (what == 'r') std::ranges::reverse(list);
      if (what == 's') std::ranges::sort(list);
      if (what == 'd') {
        std::vector<int64_t> kept;
        for (const int64_t n : list)
          if (std::ranges::find(kept, n) == kept.end()) kept.push_back(n);
        list = std::move(kept);
      }
      const std::string answer = fmt::format("{}", fmt::join(list, ","));
      return Item{.prompt = prompt, .answer = answer, .key = answer};
    });
  }
  Score score(const Item& item, std::string_view answer) const override {
    return exact(item, answer, "0123456789,");
  }
};

/// "b([)}=": closing brackets may be of the wrong kind, the opening ones are right. "cabcab|b>x=": a copy
/// with one letter replaced everywhere.
class Edits : public Task {
 public:
  std::string_view name() const override { return "edits"; }
  std::string alphabet() const override { return "()[]{}bcdefghaijxyz|>="; }
  int64_t max_answer_bytes() const override { return 24; }
  Item item(Split split, uint64_t seed, uint64_t index) const override {
    return draw_item(name(), split, seed, index,
                     [](Draws& draws) { return draws.between(0, 1) == 0 ? brackets(draws) : copy(draws); });
  }
  Score score(const Item& item, std::string_view answer) const override {
    return exact(item, answer, item.prompt[0] == 'b' ? "()[]{}" : "abcdefghijxyz");
  }

 private:
  static Item brackets(Draws& draws) {
    static constexpr std::string_view kOpen = "([{", kClose = ")]}";
    const int64_t pairs = draws.between(3, 12);
    std::string right, open;
    int64_t left = pairs;
    while (left > 0 || !open.empty()) {
      if (left > 0 && (open.empty() || draws.between(0, 1) == 0)) {
        const size_t kind = static_cast<size_t>(draws.between(0, 2));
        right += kOpen[kind];
        open += kClose[kind];
        --left;
      } else {
        right += open.back();
        open.pop_back();
      }
    }
    std::string wrong = right;
    for (char& c : wrong)
      if (kClose.find(c) != std::string_view::npos && draws.between(0, 3) == 0)
        c = kClose[static_cast<size_t>(draws.between(0, 2))];
    return {.prompt = "b" + wrong + "=", .answer = right, .key = right};
  }

  static Item copy(Draws& draws) {
    std::string text(static_cast<size_t>(draws.between(8, 24)), 'a');
    for (char& c : text) c = static_cast<char>('a' + draws.between(0, 9));
    const char from = text[static_cast<size_t>(draws.between(0, static_cast<int64_t>(text.size()) - 1))];
    const char to = static_cast<char>('x' + draws.between(0, 2));
    std::string edited = text;
    std::ranges::replace(edited, from, to);
    return {.prompt = fmt::format("c{}|{}>{}=", text, from, to), .answer = edited, .key = edited};
  }
};

}  // namespace

std::unique_ptr<Task> make_list_task() {
  return std::make_unique<Lists>();
}
std::unique_ptr<Task> make_edit_task() {
  return std::make_unique<Edits>();
}

}  // namespace forebay::train
