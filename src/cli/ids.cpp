#include "cli/ids.h"

#include <limits>

#include <fmt/format.h>

#include "cli/input.h"
#include "core/parse.h"
#include "gguf/text.h"

namespace forebay::cli {
namespace {

/// The inside of `text` when it begins with `open` and ends with `close`.
bool unwrap(std::string_view& text, std::string_view open, std::string_view close) {
  if (text.size() < open.size() + close.size() || !text.starts_with(open) || !text.ends_with(close))
    return false;
  text = trimmed(text.substr(open.size(), text.size() - open.size() - close.size()));
  return true;
}

bool looks_like_ids(std::string_view text) {
  return text.find_first_not_of("0123456789,-[] \t\r\n") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  text = trimmed(text);
  if (unwrap(text, "{", "}") && !(unwrap(text, "\"ids\"", "") && unwrap(text, ":", "")))
    return Error{Code::kInvalidArgument, "token ids: an object must be {\"ids\": [...]}"};
  unwrap(text, "[", "]");

  std::vector<int32_t> ids;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(", \t\r\n"), text.size());
    const std::string_view item = text.substr(0, end);
    Result<int64_t> id = parse_int(item, 0, std::numeric_limits<int32_t>::max());
    if (!id)
      return Error{Code::kInvalidArgument,
                   fmt::format("token id {} of the list: {} is not a number from 0 to {}", ids.size() + 1,
                               gguf::quote(item, 24), std::numeric_limits<int32_t>::max())};
    ids.push_back(static_cast<int32_t>(*id));
    text = trimmed(text.substr(end));
    if (text.starts_with(',')) {
      text = trimmed(text.substr(1));
      if (text.empty()) return Error{Code::kInvalidArgument, "token ids: the list ends with a comma"};
    }
  }
  return ids;
}

Result<std::vector<int32_t>> read_ids(Storage& storage, const std::string& argument) {
  if (looks_like_ids(argument)) return parse_ids(argument);
  const std::string text = TRY(read_argument(storage, argument));
  Result<std::vector<int32_t>> ids = parse_ids(text);
  if (!ids) return std::move(ids).error().in(argument);
  return ids;
}

}  // namespace forebay::cli
