// Filters that return an iterator: they do their work, and fail, when it is walked.
#include "tokenizer/jinja/compare.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/iterate.h"
#include "tokenizer/jinja/lookup_path.h"
#include "tokenizer/jinja/repr.h"
#include "tokenizer/jinja/tests.h"

namespace forebay::jinja {

namespace {

/// The items of `value` from the second call on; the walk begins with the first.
class Source {
 public:
  explicit Source(Value value) : value_(std::move(value)) {}

  bool next(Runtime& runtime, Value& item) {
    runtime.spend();
    if (!iterator_) iterator_ = iterate(runtime, value_);
    return iterator_->next(runtime, item);
  }
  const Value& value() const { return value_; }
  bool begun() const { return static_cast<bool>(iterator_); }

 private:
  Value value_;
  Ref<Iterator> iterator_;
};

Value items(Runtime& runtime, const Value& value, Arguments& arguments) {
  bind("items", arguments, {}, 0);
  return lazily(runtime, [value, source = Source(value)](Runtime& rt, Value& item) mutable {
    if (value.is_undefined()) return false;
    if (!value.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
    if (!source.begun()) source = Source(rt.heap().make<View>(Ref(&value.as<Dict>()), View::Part::kItems));
    return source.next(rt, item);
  });
}

Value batch(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("batch", arguments, {"linecount", "fill_with"}, 1);
  return lazily(runtime, [source = Source(value), count = bound[0], fill = bound[1], pending = Value(),
                          done = false](Runtime& rt, Value& row) mutable {
    if (done) return false;
    const int64_t n_columns = size_or(count, 0, "linecount");
    std::vector<Value> items;
    if (!pending.is_missing()) items.push_back(std::exchange(pending, {}));
    Value item;
    while (true) {
      if (!source.next(rt, item)) {
        done = true;
        break;
      }
      if (static_cast<int64_t>(items.size()) == n_columns) {
        pending = std::move(item);
        break;
      }
      items.push_back(std::move(item));
    }
    if (done && items.empty()) return false;
    if (done && !fill.is_absent() && static_cast<int64_t>(items.size()) < n_columns) {
      rt.check_text(static_cast<uint64_t>(n_columns), sizeof(Value));
      items.resize(static_cast<size_t>(n_columns), fill);
    }
    row = rt.list(std::move(items));
    return true;
  });
}

Value slice(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("slice", arguments, {"slices", "fill_with"}, 1);
  return lazily(runtime, [value, count = bound[0], fill = bound[1], items = Value(), i = int64_t{0},
                          offset = int64_t{0}](Runtime& rt, Value& column) mutable {
    const int64_t n_slices = size_or(count, 0, "slices");
    if (items.is_missing()) items = rt.list(collect(rt, value));
    if (n_slices == 0) fail("slice: integer division or modulo by zero");
    if (i >= n_slices) return false;
    rt.spend();
    const std::vector<Value>& all = items.as<List>().items;
    const auto n = static_cast<int64_t>(all.size());
    const int64_t per_slice = n / n_slices, n_longer = n % n_slices;
    const int64_t start = offset + i * per_slice;
    if (i < n_longer) ++offset;
    const int64_t end = offset + (i + 1) * per_slice;
    std::vector<Value> part(all.begin() + start, all.begin() + end);
    if (!fill.is_absent() && i >= n_longer) part.push_back(fill);
    ++i;
    column = rt.list(std::move(part));
    return true;
  });
}

Value unique(Runtime& runtime, const Value& value, Arguments& arguments) {
  const std::vector<Value> bound = bind("unique", arguments, {"case_sensitive", "attribute"}, 0);
  return lazily(runtime, [source = Source(value), seen = runtime.dict(), path = LookupPath(runtime, bound[1]),
                          case_sensitive = bool_or(bound[0], false)](Runtime& rt, Value& item) mutable {
    while (source.next(rt, item)) {
      const Value key = sort_key(rt, path.of(rt, item), case_sensitive);
      if (seen->find(rt, key) != nullptr) continue;
      seen->set(rt, key, Value::none());
      return true;
    }
    return false;
  });
}

Value map(Runtime& runtime, const Value& value, Arguments& arguments) {
  return lazily(
      runtime, [source = Source(value), arguments = std::move(arguments)](Runtime& rt, Value& item) mutable {
        if (!truthy(source.value())) return false;
        if (!arguments.positional.empty()) {
          const Value& name = arguments.positional[0];
          const Filter* filter = name.is_string() ? find_filter(name.text()) : nullptr;
          if (filter == nullptr) fail("no filter named {}", repr_of(rt, name));
          if (!source.next(rt, item)) return false;
          Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
          item = filter->call(rt, item, rest);
          return true;
        }
        const std::vector<Value> bound = bind("map", arguments, {"attribute", "default"}, 0);
        if (bound[0].is_missing()) fail("map requires a filter argument");
        if (!source.next(rt, item)) return false;
        item = LookupPath(rt, bound[0]).of(rt, item, bound[1]);
        return true;
      });
}

/// select, reject and their kin for attributes.
Value chosen(Runtime& runtime, const Value& value, Arguments& arguments, bool by_attribute, bool wanted) {
  return lazily(runtime, [source = Source(value), arguments = std::move(arguments), by_attribute, wanted](
                             Runtime& rt, Value& item) mutable {
    if (!truthy(source.value())) return false;
    const std::vector<Value>& given = arguments.positional;
    const size_t n_own = by_attribute ? 1 : 0;
    if (given.size() < n_own) fail("missing parameter for attribute name");
    const LookupPath path(rt, by_attribute ? given[0] : Value());
    const Test* test = nullptr;
    Arguments rest;
    if (given.size() > n_own) {
      const Value& name = given[n_own];
      test = name.is_string() ? find_test(name.text()) : nullptr;
      if (test == nullptr) fail("no test named {}", repr_of(rt, name));
      rest = {{given.begin() + static_cast<std::ptrdiff_t>(n_own) + 1, given.end()}, arguments.named};
    }
    while (source.next(rt, item)) {
      const Value subject = path.of(rt, item);
      Arguments passed = rest;
      if ((test != nullptr ? test->call(rt, subject, passed) : truthy(subject)) == wanted) return true;
    }
    return false;
  });
}

Value select(Runtime& runtime, const Value& value, Arguments& arguments) {
  return chosen(runtime, value, arguments, false, true);
}

Value reject(Runtime& runtime, const Value& value, Arguments& arguments) {
  return chosen(runtime, value, arguments, false, false);
}

Value selectattr(Runtime& runtime, const Value& value, Arguments& arguments) {
  return chosen(runtime, value, arguments, true, true);
}

Value rejectattr(Runtime& runtime, const Value& value, Arguments& arguments) {
  return chosen(runtime, value, arguments, true, false);
}

constexpr Filter kFilters[] = {
    {"batch", batch},           {"items", items},           {"map", map},
    {"reject", reject},         {"rejectattr", rejectattr}, {"select", select},
    {"selectattr", selectattr}, {"slice", slice},           {"unique", unique},
};

}  // namespace

std::span<const Filter> lazy_filters() {
  return kFilters;
}

}  // namespace forebay::jinja
