/// Finding text in text, in time linear in both: the inputs may be chosen to hurt.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forebay::jinja {

/// First occurrence at or after `from`, or npos.
size_t find_text(std::string_view text, std::string_view wanted, size_t from = 0);
/// Last occurrence, or npos.
size_t find_last_text(std::string_view text, std::string_view wanted);

/// Occurrences that do not overlap; the one of "" is at every code point and at the end.
size_t count_text(std::string_view text, std::string_view wanted);

/// The first `max_count` occurrences replaced; all when negative.
std::string replaced(std::string_view text, std::string_view old, std::string_view by, int64_t max_count);

}  // namespace forebay::jinja
