#include "tokenizer/jinja/filters.h"

namespace forebay::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto& filters : {text_filters(), number_filters(), sequence_filters(), lazy_filters()})
    for (const Filter& filter : filters)
      if (filter.name == name) return &filter;
  return nullptr;
}

}  // namespace forebay::jinja
