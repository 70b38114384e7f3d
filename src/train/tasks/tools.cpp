#include "train/tasks/tools.h"

#include <algorithm>

#include <fmt/format.h>

namespace forebay::train {
namespace {

constexpr std::string_view kCities[] = {"Lima",  "Oslo",   "Cairo", "Tokyo", "Rome",
                                        "Delhi", "Berlin", "Seoul", "Quito", "Turin"};
constexpr std::string_view kTitles[] = {"call", "lunch", "review", "backup", "standup", "dentist", "demo"};
constexpr std::string_view kDays[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"};
constexpr std::string_view kTopics[] = {"travel", "recipe", "budget", "garden", "invoice", "music"};
constexpr std::string_view kPaths[] = {"/etc/hosts",     "/srv/log.txt",  "/etc/app.txt",
                                       "/var/hosts.log", "/opt/notes.md", "/srv/out.csv"};
constexpr std::string_view kUnits[] = {"km", "m", "cm", "mm", "mi", "ft"};

}  // namespace

std::span<const Tool> all_tools() {
  static const std::vector<Tool> tools = {
      {"get_weather", "Get the current weather of a city", {{"city"}}},
      {"multiply", "Multiply two integers", {{"a", true}, {"b", true}}},
      {"set_timer", "Start a timer", {{"minutes", true}, {"label"}}},
      {"read_file", "Read a text file", {{"path"}}},
      {"search_notes", "Search the notes", {{"query"}, {"limit", true}}},
      {"add_event", "Add a calendar event", {{"title"}, {"day"}, {"hour", true}}},
      {"convert", "Convert a length", {{"value", true}, {"from"}, {"to"}}},
  };
  return tools;
}

ToolRequest draw_request(Draws& draws, const Tool& tool) {
  ToolRequest r{.tool = &tool, .text = {}, .values = {}};
  const auto number = [&](int64_t low, int64_t high) { return std::to_string(draws.between(low, high)); };
  const auto word = [&](const auto& words) { return std::string(draws.pick(words)); };
  const bool second = draws.between(0, 1) == 1;  // of two wordings
  std::vector<std::string>& v = r.values;
  const auto either = [&](std::string plain, std::string other) { r.text = second ? other : plain; };
  if (tool.name == "get_weather") {
    v = {word(kCities)};
    either(fmt::format("What is the weather in {}?", v[0]), fmt::format("Is it raining in {}?", v[0]));
  } else if (tool.name == "multiply") {
    v = {number(11, 999), number(11, 999)};
    either(fmt::format("Use the tool to multiply {} by {}", v[0], v[1]),
           fmt::format("What does {} times {} give? Use the tool.", v[0], v[1]));
  } else if (tool.name == "set_timer") {
    v = {number(2, 90), word(kTitles)};
    either(fmt::format("Set a {} minute timer for {}", v[0], v[1]),
           fmt::format("{} needs a timer of {} minutes", v[1], v[0]));
  } else if (tool.name == "read_file") {
    v = {word(kPaths)};
    either(fmt::format("Show me the file {}", v[0]), fmt::format("What is in {}?", v[0]));
  } else if (tool.name == "search_notes") {
    v = {word(kTopics), number(2, 20)};
    either(fmt::format("Find at most {} notes about {}", v[1], v[0]),
           fmt::format("Which notes mention {}? {} will do", v[0], v[1]));
  } else if (tool.name == "add_event") {
    v = {word(kTitles), word(kDays), number(8, 20)};
    either(fmt::format("Put {} on {} at {}", v[0], v[1], v[2]),
           fmt::format("On {} at {} there is {}", v[1], v[2], v[0]));
  } else {
    v = {number(2, 500), word(kUnits), word(kUnits)};
    either(fmt::format("Convert {} {} to {}", v[0], v[1], v[2]),
           fmt::format("How much is {} {} in {}?", v[0], v[1], v[2]));
  }
  return r;
}

std::vector<const Tool*> draw_offer(Draws& draws, size_t n, const Tool& wanted, bool offered) {
  std::vector<const Tool*> others, offer;
  for (const Tool& tool : all_tools())
    if (&tool != &wanted) others.push_back(&tool);
  if (offered) offer.push_back(&wanted);
  while (offer.size() < n && !others.empty()) {
    const auto at = static_cast<size_t>(draws.between(0, static_cast<int64_t>(others.size()) - 1));
    offer.push_back(others[at]);
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (size_t i = offer.size() - 1; i > 0; --i)
    std::swap(offer[i], offer[static_cast<size_t>(draws.between(0, static_cast<int64_t>(i)))]);
  return offer;
}

}  // namespace forebay::train
