/// Random numbers that depend on nothing but where they are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "train/tasks/task.h"

namespace forebay::train {

/// splitmix64's finaliser: a bijection of 64 bits that mixes all of them. Source: Steele, Lea and Flood 2014.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A hash of text, the same on every machine (FNV-1a, mixed).
uint64_t text_hash(std::string_view text);

/// A stream of numbers named by what it is for.
class Draws {
 public:
  Draws(uint64_t seed, std::string_view what, uint64_t index)
      : state_(mix(mix(seed) ^ text_hash(what)) ^ mix(index + 1)) {}
  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// Uniform over [low, high]; the bias of the remainder is below 2^-50 for ranges of tasks.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  template <typename T, size_t N>
  const T& pick(const T (&items)[N]) {
    return items[between(0, static_cast<int64_t>(N) - 1)];
  }
  template <typename T>
  const T& pick(std::span<const T> items) {
    return items[between(0, static_cast<int64_t>(items.size()) - 1)];
  }

 private:
  uint64_t state_;
};

/// Whether the problem of this content is held out.
bool is_held_out(std::string_view content);

/// make(draws) until its prompt is of the split: about 1.25 tries for training, 5 for validation.
template <typename Make>
Item draw_item(std::string_view task, Split split, uint64_t seed, uint64_t index, const Make& make) {
  Draws draws(seed + (split == Split::kValidation ? 0x5eed : 0), task, index);
  while (true) {
    Item item = make(draws);
    if (is_held_out(item.prompt) == (split == Split::kValidation)) return item;
  }
}

}  // namespace forebay::train
