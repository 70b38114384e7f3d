/// The tools that tool-call tasks are about: what they take, and requests that one call answers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/tasks/draws.h"

namespace forebay::train {

struct ToolParameter {
  std::string_view name;
  bool integer = false;  // else a string
};

struct Tool {
  std::string_view name;
  std::string_view description;
  std::vector<ToolParameter> parameters;  // all required
};

std::span<const Tool> all_tools();

/// A request for one tool: what the user says and the values that the call must have, in the order of the
/// parameters.
struct ToolRequest {
  const Tool* tool = nullptr;
  std::string text;
  std::vector<std::string> values;
};
ToolRequest draw_request(Draws& draws, const Tool& tool);

/// `n` different tools in an order of chance; `wanted` is among them, or, when not `offered`, is not.
std::vector<const Tool*> draw_offer(Draws& draws, size_t n, const Tool& wanted, bool offered);

}  // namespace forebay::train
