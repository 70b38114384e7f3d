/// Random schemas, and random texts of a grammar: for tests and fuzzing.
#pragma once

#include <random>
#include <string>

#include <nlohmann/json.hpp>

#include "constrain/automaton.h"

namespace forebay {

/// Random bytes that fit for about `n_bytes`, then the shortest way to an end.
inline std::string random_text(Automaton& automaton, std::mt19937_64& random, int n_bytes) {
  std::string text;
  StateId state = automaton.start();
  while (automaton.distance(state) > 0 || (static_cast<int>(text.size()) < n_bytes && random() % 4 != 0)) {
    std::vector<std::pair<uint8_t, StateId>> choices;
    int64_t best = Grammar::kUnreachable;
    for (int byte = 0; byte < 256; ++byte) {
      const StateId next = automaton.next(state, static_cast<uint8_t>(byte));
      if (next == Automaton::kDead) continue;
      choices.emplace_back(byte, next);
      best = std::min(best, automaton.distance(next));
    }
    if (choices.empty()) break;
    if (static_cast<int>(text.size()) >= n_bytes)
      std::erase_if(choices, [&](const auto& c) { return automaton.distance(c.second) > best; });
    const auto& [byte, next] = choices[random() % choices.size()];
    text += static_cast<char>(byte);
    state = next;
  }
  return text;
}

inline nlohmann::ordered_json random_schema(std::mt19937_64& random, int depth) {
  using Json = nlohmann::ordered_json;
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const auto some = [&] { return below(2) == 0; };
  const auto bounds = [&](Json& schema, bool whole) {
    const auto number = [&]() -> Json {
      const int scale = below(3) == 0 ? 1000000 : 100;
      const int n = below(2 * scale) - scale;
      if (whole && some()) return n;
      return n / 8.0;
    };
    if (some()) schema[some() ? "minimum" : "exclusiveMinimum"] = number();
    if (some()) schema[some() ? "maximum" : "exclusiveMaximum"] = number();
  };
  Json schema = Json::object();
  switch (below(depth > 0 ? 12 : 7)) {
    case 0:
      schema["type"] = "integer";
      bounds(schema, true);
      return schema;
    case 1:
      schema["type"] = "number";
      bounds(schema, false);
      return schema;
    case 2:
      schema["type"] = "string";
      if (some()) schema["minLength"] = below(4);
      if (some()) schema["maxLength"] = 3 + below(20);
      return schema;
    case 3: {
      static const char* kPatterns[] = {"^[A-Z]{3}$",           "^a?b*c+$",      "x|y",
                                        "^(foo|bar)-\\d{2,4}$", "^[^a-z]{1,5}$", "[\"\\\\]",
                                        "^\\w+@\\w+\\.com$"};
      schema["type"] = "string";
      schema["pattern"] = kPatterns[below(7)];
      return schema;
    }
    case 4:
      schema["enum"] = Json::array({"a\"b", "caf\u00e9", 1, -2.5, nullptr, true, {{"k", {1, 2}}}});
      return schema;
    case 5:
      schema["type"] = Json::array({"boolean", "null"});
      return schema;
    case 6:
      return some() ? Json(true) : schema;
    case 7:
    case 8: {
      schema["type"] = "array";
      if (some()) schema["items"] = random_schema(random, depth - 1);
      if (some()) schema["minItems"] = below(4);
      if (some()) schema["maxItems"] = 2 + below(5);
      if (below(3) == 0)
        schema["prefixItems"] = {random_schema(random, depth - 1), random_schema(random, depth - 1)};
      return schema;
    }
    case 9:
      schema["anyOf"] = {random_schema(random, depth - 1), random_schema(random, depth - 1)};
      return schema;
    default: {
      schema["type"] = "object";
      static const char* kNames[] = {"a", "ab", "name", "caf\u00e9", "x y", "quo\"te"};
      Json properties = Json::object();
      Json required = Json::array();
      for (const char* name : kNames) {
        if (some()) properties[name] = random_schema(random, depth - 1);
        if (below(3) == 0) required.push_back(name);
      }
      if (!properties.empty() && below(5) > 0) schema["properties"] = properties;
      if (some()) schema["required"] = required;
      if (some()) schema["additionalProperties"] = some() ? Json(some()) : random_schema(random, depth - 1);
      return schema;
    }
  }
}

}  // namespace forebay
