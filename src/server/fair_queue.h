/// A queue in which clients take turns, so that one that asks for much does not make the others wait for all
/// of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>

namespace forebay {

/// One client's items leave in the order they came; the client that was served goes to the end of the line.
/// Confined.
template <typename T>
class FairQueue {
 public:
  void push(const std::string& client, T item) {
    ++size_;
    for (Line& line : lines_)
      if (line.client == client) return line.items.push_back(std::move(item));
    lines_.push_back({client, {}});
    lines_.back().items.push_back(std::move(item));
  }

  /// The next item of the first client whose next item is ready.
  template <typename Predicate>
  std::optional<T> pop(Predicate is_ready) {
    const auto line =
        std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return is_ready(l.items.front()); });
    if (line == lines_.end()) return std::nullopt;
    T item = std::move(line->items.front());
    line->items.pop_front();
    --size_;
    if (line->items.empty())
      lines_.erase(line);
    else
      lines_.splice(lines_.end(), lines_, line);
    return item;
  }
  std::optional<T> pop() {
    return pop([](const T&) { return true; });
  }

  /// Takes out every item for which `leaves` is true.
  template <typename Predicate>
  void remove_if(Predicate leaves) {
    for (auto line = lines_.begin(); line != lines_.end();) {
      size_ -= std::erase_if(line->items, leaves);
      line = line->items.empty() ? lines_.erase(line) : std::next(line);
    }
  }

  size_t size() const { return size_; }

 private:
  struct Line {
    std::string client;
    std::deque<T> items;  // never empty
  };
  std::list<Line> lines_;
  size_t size_ = 0;
};

}  // namespace forebay
