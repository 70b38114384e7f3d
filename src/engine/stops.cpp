#include "engine/stops.h"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace forebay {
namespace {

constexpr int64_t kInterval = 2048;
/// A pass of its own costs more than reading this many tokens again.
constexpr int64_t kNearCells = 16;

}  // namespace

std::vector<int64_t> stops_in(std::span<const int32_t> prompt, int64_t first, int32_t turn_token) {
  const auto n = static_cast<int64_t>(prompt.size());
  std::vector<int64_t> turns;
  for (int64_t i = 0; i < n && turn_token >= 0; ++i)
    if (prompt[i] == turn_token) turns.push_back(i);

  std::vector<int64_t> wanted;
  for (int64_t cell = (first / kInterval + 1) * kInterval; cell < n; cell += kInterval)
    wanted.push_back(cell);
  if (turns.size() > 2) wanted.push_back(turns[turns.size() - 2]);
  // What every conversation with this system prompt shares, and where this answer begins.
  std::vector<int64_t> stops;
  if (turns.size() > 1) stops.push_back(turns[1]);
  if (turns.size() > 2) stops.push_back(turns.back());
  for (int64_t cell : wanted)
    if (std::all_of(stops.begin(), stops.end(), [&](int64_t s) { return std::abs(s - cell) >= kNearCells; }))
      stops.push_back(cell);
  std::erase_if(stops, [&](int64_t cell) { return cell <= first || cell >= n; });
  std::sort(stops.begin(), stops.end());
  return stops;
}

int32_t find_turn_token(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  nlohmann::ordered_json context = {{"messages", {{{"role", "user"}, {"content", "x"}}}}};
  context["bos_token"] = "";
  context["eos_token"] = "";
  const Result<std::string> text = chat_template.render(context, /*now=*/0);
  if (!text) return -1;
  for (const int32_t id : tokenizer.encode(*text, {.parse_special = true}))
    if (tokenizer.kind(id) == TokenKind::kControl && tokenizer.bos() != id) return id;
  return -1;
}

}  // namespace forebay
