/// Problems with answers that a program can check, made from numbers: item i of a split is a pure function of
/// (task, split, seed, i), nothing is downloaded, and a problem that validates never trains.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay::train {

/// Every fifth problem, by its content, is held out of training.
enum class Split { kTrain, kValidation };

struct Item {
  std::string prompt;
  std::string answer;      // a right one; other texts may be right too (countdown)
  std::string key;         // what the answer is checked against, in the task's own notation
  bool answerable = true;  // false: the right answer is to decline
};

/// The reward is exact, 0 or 1. The rest is for the record: none of it is ever added to the reward.
struct Score {
  double reward = 0;
  double format = 0;      // 1 when the answer has the asked form, right or not
  bool declined = false;  // said that it cannot be done
};

/// Immutable, thread-safe.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;
  /// Every character that a prompt or a right answer may have, each once.
  virtual std::string alphabet() const = 0;
  /// Bytes that every right answer of the generator fits into.
  virtual int64_t max_answer_bytes() const = 0;
  virtual Item item(Split split, uint64_t seed, uint64_t index) const = 0;
  /// Of any text whatever.
  virtual Score score(const Item& item, std::string_view answer) const = 0;

 protected:
  Task() = default;
};

/// "add-2d", "arithmetic-3d", "lists", "edits", "countdown", "tools", "tools-or-none", and for pebble
/// "chat-arithmetic", "chat-tools". Errors: kInvalidArgument with the names that exist.
Result<std::unique_ptr<Task>> make_task(std::string_view name);
std::vector<std::string_view> task_names();

}  // namespace forebay::train
