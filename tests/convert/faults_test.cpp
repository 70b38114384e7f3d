/// Storage that fails and users who stop: an error, and nothing left behind.
#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/result_matchers.h"
#include "test_checkpoint.h"

namespace forebay {
namespace {

/// A checkpoint with all files, in two shards.
TestCheckpoint full_checkpoint() {
  TestCheckpoint checkpoint = TestCheckpoint::with_draft_head();
  checkpoint.files["generation_config.json"] = R"({"temperature": 0.5})";
  checkpoint.files["tokenizer_config.json"] = "{}";
  return checkpoint;
}

size_t n_outputs(MemoryStorage& storage) {
  size_t n = 0;
  for (const Path path :
       {"out/model.gguf", "out/model.gguf.partial", "out/mtp-model.gguf", "out/mtp-model.gguf.partial"})
    n += storage.exists(path);
  return n;
}

TEST(FaultsTest, EveryFailureIsReportedAndLeavesNothing) {
  const ConvertOptions options = convert_options("q8_0", MtpMode::kSeparate);
  const Converted wanted(full_checkpoint(), options, 2);
  for (const StorageOp op : {StorageOp::kOpen, StorageOp::kRead, StorageOp::kMap, StorageOp::kCreate,
                             StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename}) {
    MemoryStorage storage;
    full_checkpoint().write(storage, 2);
    int n_failures = 0;
    // Writes come by the hundred: look at each of the first ones, then at every 37th.
    for (int fail_at = 1;; fail_at += fail_at < 40 ? 1 : 37) {
      FaultyStorage faulty(storage, {op, fail_at});
      const Result<ConvertReport> report = convert_in(faulty, options);
      if (faulty.n_faults() == 0) {
        ASSERT_OK(report);
        break;
      }
      ++n_failures;
      EXPECT_TRUE(fails_with(report, Code::kIo, "injected fault"))
          << static_cast<int>(op) << " at " << fail_at;
      ASSERT_EQ(n_outputs(storage), 0u) << static_cast<int>(op) << " at " << fail_at;
    }
    EXPECT_GT(n_failures, 0) << static_cast<int>(op);
    EXPECT_EQ(storage.get(kOutput), wanted.bytes());
  }
}

TEST(FaultsTest, AFullDiskStaysFull) {
  MemoryStorage storage;
  full_checkpoint().write(storage);
  FaultyStorage faulty(storage, {StorageOp::kWrite, 20, true});
  EXPECT_TRUE(
      fails_with(convert_in(faulty, convert_options("q8_0")), Code::kIo, "model.gguf", "injected fault"));
  EXPECT_EQ(n_outputs(storage), 0u);
}

TEST(FaultsTest, AnOlderOutputSurvives) {
  MemoryStorage storage;
  full_checkpoint().write(storage);
  storage.put(kOutput, "precious");
  FaultyStorage faulty(storage, {StorageOp::kWrite, 20});
  EXPECT_FALSE(convert_in(faulty, convert_options("q8_0")));
  EXPECT_EQ(storage.get(kOutput), "precious");
}

TEST(StopTest, AtAnyTensor) {
  const TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen3");
  MemoryStorage storage;
  checkpoint.write(storage);
  ThreadPool pool(2);
  for (const int stop_after : {1, 2, 17, 35, 36}) {
    std::stop_source source;
    const auto progress = [&](const ConvertProgress& p) {
      if (p.tensors_done == stop_after) source.request_stop();
    };
    const auto report = convert_checkpoint(storage, kCheckpoint, kOutput, convert_options("bf16"), pool,
                                           progress, source.get_token());
    EXPECT_TRUE(fails_with(report, Code::kCancelled, "interrupted")) << stop_after;
    EXPECT_EQ(n_outputs(storage), 0u);
  }
}

TEST(ProgressTest, CountsToTheEnd) {
  const TestCheckpoint checkpoint = TestCheckpoint::with_draft_head();
  MemoryStorage storage;
  checkpoint.write(storage);
  ThreadPool pool(2);
  ConvertProgress last{};
  bool is_monotonic = true;
  const auto progress = [&](const ConvertProgress& p) {
    is_monotonic &= p.bytes_done >= last.bytes_done && p.tensors_done >= last.tensors_done;
    EXPECT_FALSE(p.tensor.empty());
    last = p;
  };
  const auto report = convert_checkpoint(storage, kCheckpoint, kOutput,
                                         convert_options("q8_0", MtpMode::kSeparate), pool, progress, {});
  ASSERT_OK(report);
  EXPECT_TRUE(is_monotonic);
  EXPECT_EQ(last.tensors_done, last.n_tensors);
  EXPECT_EQ(last.bytes_done, last.n_bytes);
  EXPECT_EQ(last.n_tensors, report->outputs[0].n_tensors + report->outputs[1].n_tensors);
  EXPECT_EQ(last.n_bytes, report->outputs[0].tensor_bytes + report->outputs[1].tensor_bytes);
}

TEST(ThreadsTest, OneOrManyGiveTheSameBytes) {
  const Converted two(TestCheckpoint::vectors("qwen35moe"), convert_options("q4_1"));
  for (const int n_threads : {1, 5}) {
    MemoryStorage storage;
    TestCheckpoint::vectors("qwen35moe").write(storage);
    ThreadPool pool(n_threads);
    ASSERT_OK(convert_checkpoint(storage, kCheckpoint, kOutput, convert_options("q4_1"), pool,
                                 [](const ConvertProgress&) {}, {}));
    EXPECT_EQ(storage.get(kOutput), two.bytes());
  }
}

}  // namespace
}  // namespace forebay
