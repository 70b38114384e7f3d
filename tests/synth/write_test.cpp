// The file: its bytes are a function of the options, its size is known before, and a failure leaves nothing.
#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "gguf/gguf.h"
#include "small_models.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::synth {
namespace {

Result<void> write(Storage& storage, const SynthOptions& options, int n_threads = 2,
                   std::stop_token stop = {}) {
  const SynthPlan plan = must(plan_synthetic(options));
  ThreadPool pool(n_threads);
  return write_synthetic(
      storage, "m.gguf", plan, pool, [](const SynthProgress&) {}, stop);
}

std::string written(const SynthOptions& options, int n_threads = 2) {
  MemoryStorage storage;
  const Result<void> done = write(storage, options, n_threads);
  EXPECT_OK(done);
  return storage.get("m.gguf");
}

TEST(Write, SizeIsAsPredicted) {
  for (const std::string& name : geometry_names())
    for (const char* types : {"q2_0", "f16", "q8_0,*ffn_down_exps.weight=q4_0"}) {
      const SynthOptions options = small_options(name, types);
      EXPECT_EQ(written(options).size(), must(plan_synthetic(options)).file_bytes) << name << ' ' << types;
    }
}

TEST(Write, SameSeedSameBytesOnAnyNumberOfThreads) {
  SynthOptions options = small_options("qwen3.8-flash-next");
  const std::string first = written(options, 1);
  EXPECT_EQ(first, written(options, 1));
  EXPECT_EQ(first, written(options, 3));
  options.seed = 2;
  const std::string other = written(options);
  EXPECT_EQ(first.size(), other.size());
  EXPECT_NE(first, other);
}

TEST(Write, ExpertsDiffer) {
  MemoryStorage storage;
  ASSERT_OK(write(storage, small_options("qwen3-next-80b")));
  const GgufFile file = must(GgufFile::open(storage, "m.gguf"));
  const TensorInfo* tensor = file.find("blk.0.ffn_gate_exps.weight");
  ASSERT_NE(tensor, nullptr);
  const std::span<const std::byte> bytes = file.bytes(*tensor);
  const size_t one = bytes.size() / 8;
  for (size_t i = 1; i < 8; ++i)
    EXPECT_FALSE(std::ranges::equal(bytes.first(one), bytes.subspan(i * one, one))) << i;
}

TEST(Write, ReportsEveryByte) {
  MemoryStorage storage;
  const SynthPlan plan = must(plan_synthetic(small_options("qwen3.5-35b-a3b")));
  ThreadPool pool(1);
  uint64_t last = 0;
  const auto progress = [&](const SynthProgress& at) {
    EXPECT_GT(at.bytes_done, last);
    EXPECT_EQ(at.n_bytes, plan.tensor_bytes);
    last = at.bytes_done;
  };
  ASSERT_OK(write_synthetic(storage, "m.gguf", plan, pool, progress, {}));
  EXPECT_EQ(last, plan.tensor_bytes);
}

TEST(Write, EveryFaultIsAnErrorAndLeavesNothing) {
  const SynthOptions options = small_options("qwen3-30b-a3b");
  for (const StorageOp op :
       {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename}) {
    int n_failed = 0;
    for (int at = 1;; at += op == StorageOp::kWrite ? 7 : 1) {
      MemoryStorage below;
      FaultyStorage storage(
          below, {.op = op, .fail_at = at, .keep_failing = true, .reason = "No space left on device"});
      const Result<void> done = write(storage, options, 1);
      if (storage.n_faults() == 0) {
        EXPECT_OK(done);
        break;
      }
      ++n_failed;
      EXPECT_TRUE(fails_with(done, Code::kIo, "m.gguf", "No space left on device"));
      EXPECT_EQ(below.n_files(), 0u);
    }
    EXPECT_GT(n_failed, 0);
  }
}

TEST(Write, AStopLeavesTheOldFile) {
  MemoryStorage storage;
  storage.put("m.gguf", "old");
  const SynthPlan plan = must(plan_synthetic(small_options("qwen3-30b-a3b")));
  ThreadPool pool(1);
  std::stop_source stop;
  int n_calls = 0;
  const auto progress = [&](const SynthProgress&) {
    if (++n_calls == 5) stop.request_stop();
  };
  EXPECT_TRUE(fails_with(write_synthetic(storage, "m.gguf", plan, pool, progress, stop.get_token()),
                         Code::kCancelled, "interrupted"));
  EXPECT_EQ(n_calls, 5);
  EXPECT_EQ(storage.n_files(), 1u);
  EXPECT_EQ(storage.get("m.gguf"), "old");
}

}  // namespace
}  // namespace forebay::synth
