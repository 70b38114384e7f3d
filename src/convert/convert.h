/// Checkpoint directories (config.json, safetensors, tokenizer.json, chat template) -> GGUF files.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "convert/type_plan.h"
#include "core/function_ref.h"
#include "core/path.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"
#include "tensor/dtype.h"

namespace forebay {

/// Where the draft head (the checkpoint's mtp.* tensors) goes. Some readers refuse a merged one.
enum class MtpMode {
  kMerged,    // a last block of the same file
  kSeparate,  // a second file, "mtp-" + the first one's name; it borrows the trunk's embedding and output
  kNone,      // left out
};

struct ConvertOptions {
  // Changes results.
  TypePlan types;                  // Q8_0 by default
  MtpMode mtp = MtpMode::kMerged;  // a checkpoint without head converts the same in all modes
  std::string name;                // general.name; empty: the directory's name
  GgufMetadata metadata = {};      // further keys, over those that follow from the checkpoint
  // Changes nothing but what is written.
  bool dry_run = false;  // plan and check everything, write nothing
};

struct ConvertProgress {
  uint64_t bytes_done, n_bytes;  // of tensors, as written
  int tensors_done, n_tensors;
  std::string_view tensor;  // the one being written
};

struct ConvertReport {
  struct Output {
    Path path;
    int n_tensors = 0;
    uint64_t tensor_bytes = 0;  // without headers
  };
  struct TypeShare {
    int n_tensors = 0;
    uint64_t bytes = 0;
  };
  std::string architecture;
  std::vector<Output> outputs;  // one, or trunk and draft head
  std::map<DType, TypeShare> by_type;
  uint64_t n_parameters = 0;
  std::vector<std::string> notes;  // what was left out, replaced or assumed; one line each
};

/// Converts the checkpoint in `directory` to `output`.
///
/// Model types: qwen4_exp, qwen3_next, qwen3_5_moe, qwen3_moe, qwen3, qwen2, llama, text configs nested in
/// multimodal ones included. Experts stacked or one by one; float weights of 16 bits and more, or FP8 with
/// block scales. Rows are read, transformed, encoded in parallel and written a few MiB at a time; tensors are
/// read through mappings, so memory use does not grow with the model.
/// Nothing appears under the output names until everything is written; after an error or a stop nothing is
/// left behind.
/// Errors: kNotFound and kCorrupt name the tensor (with seen and wanted shape), key or file; kUnsupported
/// what this converter does not know, tensors without a place in the model included; kCancelled after a stop.
Result<ConvertReport> convert_checkpoint(Storage& storage, const Path& directory, const Path& output,
                                         const ConvertOptions& options, ThreadPool& pool,
                                         FunctionRef<void(const ConvertProgress&)> progress,
                                         std::stop_token stop);

}  // namespace forebay
