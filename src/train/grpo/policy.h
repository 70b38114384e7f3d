/// The model that a run trains, the copy that holds it, and the words that they speak.
#pragma once

#include <memory>

#include "forebay/result.h"

#include "core/storage.h"
#include "train/grpo/settings.h"
#include "train/nets/net.h"
#include "train/tasks/task.h"

namespace forebay::train {

struct Policy {
  std::shared_ptr<Net> net;
  std::shared_ptr<Net> reference;  // the same
  /// A GGUF file with the tokenizer, and where that file is.
  std::shared_ptr<Storage> vocabulary_storage;
  Path vocabulary;
};

/// settings.model.path's, or a new toy whose tokens are the characters of the task, on settings.run.device.
/// Errors: of the file; kInvalidArgument for a task whose texts need a vocabulary, without a model that has
/// one.
Result<Policy> make_policy(Storage& storage, const GrpoSettings& settings, const Task& task);

/// Both are of one shape.
void copy_parameters(const Net& from, Net& to);

}  // namespace forebay::train
