/// Operations on text that methods and filters share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/runtime.h"

namespace forebay::jinja {

/// `text` with the flag of `model`: what a method of a string marked safe returns is marked safe.
Value like(Runtime& runtime, const Value& model, std::string text);

enum class Side { kLeft, kRight, kBoth };

/// Without the code points in `chars` at the sides; without white space when `chars` is absent.
std::string_view stripped(std::string_view text, const Value& chars, Side side);

/// Pieces between runs of white space, at most `max_splits` cuts unless negative.
std::vector<std::string_view> split_spaces(std::string_view text, int64_t max_splits, Side from);
/// Pieces between separators, which are not empty.
std::vector<std::string_view> split_text(std::string_view text, std::string_view separator,
                                         int64_t max_splits, Side from);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// replaced() of search.h, failing before the result outgrows the limit.
std::string replaced_within(Runtime& runtime, std::string_view text, std::string_view old,
                            std::string_view by, int64_t max_count);

/// `text` in `width` code points: `side` is where the text goes.
std::string justified(Runtime& runtime, std::string_view text, int64_t width, std::string_view fill,
                      Side side);

/// Strings as a list value, like `model`.
Value list_of(Runtime& runtime, const Value& model, const std::vector<std::string_view>& pieces);

}  // namespace forebay::jinja
