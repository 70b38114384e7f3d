#include "tokenizer/jinja/iterate.h"

#include <utility>

namespace forebay::jinja {

namespace {

// Each looks at its container anew for every item, so that one changed during the walk does no harm.

class ListIterator : public Iterator {
 public:
  explicit ListIterator(Ref<List> list) : list_(std::move(list)) {}
  bool next(Runtime&, Value& item) override {
    if (!list_ || i_ >= list_->items.size()) return false;
    item = list_->items[i_++];
    return true;
  }
  void forget() override { list_ = {}; }

 private:
  Ref<List> list_;
  size_t i_ = 0;
};

class TupleIterator : public Iterator {
 public:
  explicit TupleIterator(Ref<Tuple> tuple) : tuple_(std::move(tuple)) {}
  bool next(Runtime&, Value& item) override {
    if (!tuple_ || i_ >= tuple_->items.size()) return false;
    item = tuple_->items[i_++];
    return true;
  }
  void forget() override { tuple_ = {}; }

 private:
  Ref<Tuple> tuple_;
  size_t i_ = 0;
};

class StringIterator : public Iterator {
 public:
  explicit StringIterator(Ref<String> string) : string_(std::move(string)) {}
  bool next(Runtime& runtime, Value& item) override {
    if (!string_ || offset_ >= string_->text.size()) return false;
    const size_t begin = std::exchange(offset_, code_point_at(string_->text, offset_).end);
    item = runtime.string(string_->text.substr(begin, offset_ - begin));
    return true;
  }
  void forget() override { string_ = {}; }

 private:
  Ref<String> string_;
  size_t offset_ = 0;
};

class DictIterator : public Iterator {
 public:
  DictIterator(Ref<Dict> dict, View::Part part) : dict_(std::move(dict)), part_(part), size_(dict_->size()) {}
  bool next(Runtime& runtime, Value& item) override {
    if (!dict_) return false;
    if (dict_->size() != size_) fail("dictionary changed size during iteration");
    if (i_ >= size_) return false;
    item = view_item(runtime, dict_->entries()[i_++], part_);
    return true;
  }
  void forget() override { dict_ = {}; }

 private:
  Ref<Dict> dict_;
  View::Part part_;
  size_t size_;
  size_t i_ = 0;
};

class RangeIterator : public Iterator {
 public:
  RangeIterator(Int start, Int step, Int n_items) : next_(start), step_(step), n_left_(n_items) {}
  bool next(Runtime&, Value& item) override {
    if (n_left_ == 0) return false;
    --n_left_;
    item = Value::integer(std::exchange(next_, next_ + step_));
    return true;
  }

 private:
  Int next_, step_, n_left_;
};

class Lazy : public Iterator {
 public:
  explicit Lazy(std::function<bool(Runtime&, Value&)> next) : next_(std::move(next)) {}
  bool next(Runtime& runtime, Value& item) override {
    if (running_) fail("generator already executing");
    if (!next_) return false;
    // A lazy filter of a lazy filter and so on.
    const Nesting nesting(runtime);
    running_ = true;
    bool more = false;
    try {
      more = next_(runtime, item);
    } catch (...) {
      running_ = false;
      throw;
    }
    running_ = false;
    if (!more) next_ = nullptr;
    return more;
  }
  void forget() override { next_ = nullptr; }

 private:
  std::function<bool(Runtime&, Value&)> next_;
  bool running_ = false;
};

}  // namespace

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kIterator:
      return true;
    default:
      return false;
  }
}

Ref<Iterator> iterate(Runtime& runtime, const Value& value) {
  const auto as_iterator = [](auto ref) { return Ref<Iterator>(ref.get()); };
  Heap& heap = runtime.heap();
  switch (value.kind()) {
    case Kind::kUndefined:
      return as_iterator(heap.make<RangeIterator>(0, 0, 0));
    case Kind::kString:
      return as_iterator(heap.make<StringIterator>(Ref(&value.as<String>())));
    case Kind::kList:
      return as_iterator(heap.make<ListIterator>(Ref(&value.as<List>())));
    case Kind::kTuple:
      return as_iterator(heap.make<TupleIterator>(Ref(&value.as<Tuple>())));
    case Kind::kDict:
      return as_iterator(heap.make<DictIterator>(Ref(&value.as<Dict>()), View::Part::kKeys));
    case Kind::kView:
      return as_iterator(heap.make<DictIterator>(value.as<View>().dict, value.as<View>().part));
    case Kind::kRange: {
      const Range& range = value.as<Range>();
      return as_iterator(heap.make<RangeIterator>(range.start, range.step, range.length()));
    }
    case Kind::kIterator:
      return Ref(&value.as<Iterator>());
    default:
      fail("'{}' object is not iterable", type_name(value));
  }
}

Ref<Iterator> iterate_backwards(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kRange: {
      const Range& range = value.as<Range>();
      const Int n = range.length();
      return Ref<Iterator>(
          runtime.heap().make<RangeIterator>(range.start + range.step * (n - 1), -range.step, n).get());
    }
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView: {
      std::vector<Value> items = collect(runtime, value);
      return iterate(runtime, runtime.list({items.rbegin(), items.rend()}));
    }
    default:
      return {};
  }
}

std::optional<Int> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.as<String>().length;
    case Kind::kList:
      return value.as<List>().items.size();
    case Kind::kTuple:
      return value.as<Tuple>().items.size();
    case Kind::kDict:
      return value.as<Dict>().size();
    case Kind::kView:
      return value.as<View>().dict->size();
    case Kind::kRange:
      return value.as<Range>().length();
    default:
      return std::nullopt;
  }
}

std::vector<Value> collect(Runtime& runtime, Iterator& iterator) {
  // Charged while growing: the length is not known, and may be beyond what fits.
  const Ref<List> growing = runtime.heap().make<List>(std::vector<Value>());
  Value item;
  while (iterator.next(runtime, item)) {
    runtime.spend();
    runtime.heap().charge(*growing, sizeof(Value));
    growing->items.push_back(std::move(item));
  }
  return std::move(growing->items);
}

std::vector<Value> collect(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kList:
      runtime.spend(value.as<List>().items.size() / 4);
      return value.as<List>().items;
    case Kind::kTuple:
      runtime.spend(value.as<Tuple>().items.size() / 4);
      return value.as<Tuple>().items;
    default:
      return collect(runtime, *iterate(runtime, value));
  }
}

Value lazily(Runtime& runtime, std::function<bool(Runtime&, Value&)> next) {
  return runtime.heap().make<Lazy>(std::move(next));
}

Value view_item(Runtime& runtime, const Dict::Entry& entry, View::Part part) {
  switch (part) {
    case View::Part::kKeys:
      return entry.key;
    case View::Part::kValues:
      return entry.value;
    case View::Part::kItems:
      break;
  }
  return runtime.tuple({entry.key, entry.value});
}

}  // namespace forebay::jinja
