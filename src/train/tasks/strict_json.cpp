#include "train/tasks/strict_json.h"

#include <set>
#include <string>
#include <vector>

namespace forebay::train {

std::optional<nlohmann::json> parse_strict_json(std::string_view text) {
  using Json = nlohmann::json;
  if (text.size() > 4096 || text.empty()) return std::nullopt;
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // the parser would take it as the end
  if (std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos ||
      std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
    return std::nullopt;
  std::vector<std::set<std::string>> names;  // of the objects that are open
  bool twice = false;
  const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key) twice |= !names.back().insert(value.get<std::string>()).second;
    return true;
  };
  Json json = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (json.is_discarded() || twice) return std::nullopt;
  return json;
}

}  // namespace forebay::train
