#include "tokenizer/jinja/sorting.h"

#include <algorithm>
#include <numeric>

#include "tokenizer/jinja/compare.h"

namespace forebay::jinja {

void sort_by(Runtime& runtime, std::vector<Value>& items, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? less(runtime, keys[b], keys[a]) : less(runtime, keys[a], keys[b]);
  });
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
}

}  // namespace forebay::jinja
