/// One maker per task; task.cpp has the table.
#pragma once

#include <memory>

#include "train/tasks/task.h"

namespace forebay::train {

std::unique_ptr<Task> make_add_task();
std::unique_ptr<Task> make_arithmetic_task();
std::unique_ptr<Task> make_list_task();
std::unique_ptr<Task> make_edit_task();
std::unique_ptr<Task> make_countdown_task();
std::unique_ptr<Task> make_tool_task(bool with_unanswerable);
std::unique_ptr<Task> make_chat_arithmetic_task();
std::unique_ptr<Task> make_chat_tool_task();

}  // namespace forebay::train
