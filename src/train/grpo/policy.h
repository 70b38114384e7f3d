/// The model that a run trains, the copy that holds it, and the words that they speak.
#pragma once

#include <memory>

#include "forebay/result.h"

#include "core/storage.h"
#include "train/grpo/settings.h"
#include "train/nets/net.h"
#include "train/tasks/task.h"

namespace forebay::train {

/// A GGUF file with a tokenizer, and where that file is.
struct Words {
  std::shared_ptr<Storage> storage;
  Path path;
};

struct Policy {
  std::shared_ptr<Net> net;
  std::shared_ptr<Net> reference;  // the same
  Words words;
};

/// settings.model.path's, or a new toy whose tokens are the characters of the task, on `device`: the whole of
/// it, or stage `stage` of `n_stages`. The path is a GGUF file, a directory with config.json and safetensors,
/// or what `train pretrain` and `train sft` leave behind: a directory with model/ and model.gguf. Errors: of
/// the file; kInvalidArgument for a task whose texts need a vocabulary, without a model that has one.
Result<Policy> make_policy(Storage& storage, const GrpoSettings& settings, const Task& task, int64_t stage,
                           int64_t n_stages, torch::Device device);

/// Both are of one shape.
void copy_parameters(const Net& from, Net& to);

}  // namespace forebay::train
