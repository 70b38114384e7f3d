/// Models that tests run: tiny random ones of six families with reference logits (tests/vectors), converted
/// on first use, and the embedded one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/memory_budget.h"
#include "core/storage.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"
#include "kernels/context.h"
#include "model/model.h"
#include "safetensors/safetensors.h"

namespace forebay::testing {

inline const std::vector<std::string> kFamilies{"qwen2",     "qwen3",     "qwen3moe",
                                                "qwen3next", "qwen35moe", "qwen4exp"};

/// The GGUF of tests/vectors/<family> with matrices of `type`, made once per process.
std::filesystem::path converted_vectors(const std::string& family, const std::string& type = "bf16");

/// models/pebble.gguf of the checkout.
std::filesystem::path embedded_model();

/// Tensors of a safetensors file by name, as f32 or i32.
class Expected {
 public:
  explicit Expected(const std::filesystem::path& file);
  bool has(const std::string& name) const;
  std::vector<float> floats(const std::string& name) const;
  std::vector<int32_t> ints(const std::string& name) const;

 private:
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<SafetensorsFile> file_;
};
/// tests/vectors/<family>/expected.safetensors
Expected expected_of(const std::string& family);
/// Its "ids".
std::vector<int32_t> ids_of(const std::string& family);

/// Ids below 500, others for each salt.
std::vector<int32_t> some_ids(int64_t n, int salt = 0);

/// A model with everything it needs to live. Fails the test when the file does not load.
struct LoadedModel {
  explicit LoadedModel(const std::filesystem::path& file, int n_threads = 2, Isa isa = best_isa(),
                       ModelOptions options = {});

  /// All positions' logits [ids][V] of a fresh sequence, in windows of `chunk` tokens.
  std::vector<float> logits(const std::vector<int32_t>& ids, int64_t chunk = 256);
  SequenceState state(int64_t context = 1024);

  std::unique_ptr<Storage> storage;
  MemoryBudget budget;
  ThreadPool pool;
  KernelContext kernels;
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Model> model;
};

bool same_bits(std::span<const float> a, std::span<const float> b);

/// Cells [first, first + n) as [cell][width] floats.
std::vector<float> decoded(const KvRows& rows, int64_t first, int64_t n);

}  // namespace forebay::testing
