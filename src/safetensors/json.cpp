#include "safetensors/json.h"

#include <set>
#include <vector>

#include <fmt/format.h>

namespace forebay::safetensors {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxQuotedBytes = 96;

/// What the parser's callback cannot return.
struct Refusal {
  std::string reason;
};

/// Follows a parse, because the parser itself keeps the last of two equal keys without a word.
class Watch {
 public:
  void see(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        keys_.emplace_back();
        if (keys_.size() > kMaxDepth) throw Refusal{fmt::format("nested deeper than {}", kMaxDepth)};
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second) throw Refusal{fmt::format("key {} appears twice", quote(key))};
        break;
      }
      default:
        break;
    }
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of each open object; empty for arrays
};

}  // namespace

Result<json> parse_json(std::string_view text) {
  try {
    Watch watch;
    return json::parse(text.begin(), text.end(), [&](int, json::parse_event_t event, const json& parsed) {
      watch.see(event, parsed);
      return true;
    });
  } catch (const Refusal& refusal) {
    return Error{Code::kCorrupt, "JSON: " + refusal.reason};
  } catch (const json::parse_error& error) {
    return Error{Code::kCorrupt, fmt::format("JSON: wrong at byte {} of {}", error.byte, text.size())};
  } catch (const json::exception&) {
    return Error{Code::kCorrupt, "JSON: a number out of range"};
  }
}

std::string quote(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  std::string out = json(text.substr(0, kMaxQuotedBytes)).dump(-1, ' ', true, json::error_handler_t::replace);
  return cut ? out + "..." : out;
}

}  // namespace forebay::safetensors
