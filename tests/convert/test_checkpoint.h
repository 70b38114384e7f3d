/// Small checkpoints that tests take apart, change and convert, all in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "convert/convert.h"
#include "gguf/gguf.h"
#include "safetensors/safetensors.h"
#include "support/memory_storage.h"

namespace forebay {

inline const std::vector<std::string> kVectorFamilies = {"qwen2",     "qwen3",     "qwen3moe",
                                                         "qwen3next", "qwen35moe", "qwen4exp"};

struct TestTensor {
  SafeType type = SafeType::kF32;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;

  std::vector<float> floats() const;
};

/// A checkpoint with its parts open for changes.
struct TestCheckpoint {
  std::map<std::string, TestTensor> tensors;
  nlohmann::json config;
  std::map<std::string, std::string> files;  // others, by name

  /// tests/vectors/<family>
  static TestCheckpoint vectors(const std::string& family);
  /// The qwen4exp vectors with a draft head whose weights are copies of the trunk's.
  static TestCheckpoint with_draft_head();
  /// As with_draft_head(), from the qwen3next or qwen35moe vectors.
  static TestCheckpoint with_plain_draft_head(const std::string& family);
  /// A dense Llama out of the qwen2 vectors.
  static TestCheckpoint llama();

  void set(const std::string& name, std::vector<uint64_t> shape, const std::vector<float>& values);
  void rename_all(const std::string& prefix, const std::string& new_prefix);
  /// config.json, the tensors in n_shards files, the other files; under "ckpt".
  void write(MemoryStorage& storage, int n_shards = 1) const;
};

inline const Path kCheckpoint = "ckpt";
inline const Path kOutput = "out/model.gguf";

ConvertOptions convert_options(const std::string& types, MtpMode mtp = MtpMode::kMerged);

/// Converts what lies under "ckpt" to "out/model.gguf" on two threads.
Result<ConvertReport> convert_in(Storage& storage, const ConvertOptions& options, std::stop_token stop = {});

/// Writes, converts and opens. Throws when something fails: for tests whose subject is another.
struct Converted {
  Converted(const TestCheckpoint& checkpoint, const ConvertOptions& options, int n_shards = 1);

  std::vector<float> floats(const std::string& tensor) const { return floats_of(*file, tensor); }
  static std::vector<float> floats_of(const GgufFile& file, const std::string& tensor);
  const std::string& bytes() const { return storage.get(kOutput); }

  MemoryStorage storage;
  ConvertReport report;
  std::unique_ptr<GgufFile> file;
};

}  // namespace forebay
