/// A queue that keeps its memory: std::deque frees and takes blocks as it moves along.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace forebay {

/// Thread-compatible.
template <typename T>
class Fifo {
 public:
  void reserve(size_t n) { items_.reserve(n); }
  bool empty() const { return first_ == items_.size(); }
  size_t size() const { return items_.size() - first_; }
  const T& front() const { return items_[first_]; }

  void push(T item) {
    // Half of it is behind us: moving the rest costs no more than was popped.
    if (items_.size() == items_.capacity() && first_ > items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }
  void push(std::span<const T> items) {
    for (const T& item : items) push(item);
  }
  T pop() {
    T item = std::move(items_[first_++]);
    if (empty()) clear();
    return item;
  }
  void clear() {
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> items_;  // those before first_ were popped
  size_t first_ = 0;
};

}  // namespace forebay
