#include "train/tasks/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/tasks/all_tasks.h"

namespace forebay::train {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Task> (*make)();
};
constexpr Row kTasks[] = {
    {"add-2d", make_add_task},
    {"arithmetic-3d", make_arithmetic_task},
    {"lists", make_list_task},
    {"edits", make_edit_task},
    {"countdown", make_countdown_task},
    {"tools", [] { return make_tool_task(false); }},
    {"tools-or-none", [] { return make_tool_task(true); }},
    {"chat-arithmetic", make_chat_arithmetic_task},
    {"chat-tools", make_chat_tool_task},
};

}  // namespace

std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kTasks) names.push_back(row.name);
  return names;
}

Result<std::unique_ptr<Task>> make_task(std::string_view name) {
  for (const Row& row : kTasks)
    if (row.name == name) return row.make();
  return Error{Code::kInvalidArgument,
               fmt::format("task '{}': expected one of {}", name, fmt::join(task_names(), ", "))};
}

}  // namespace forebay::train
