// Both engines read the same bytes, say the same about a file that ends, and wait for their reads.
#include "core/read_queue.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "core/page_range.h"
#include "core/storage.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

constexpr uint64_t kFileBytes = 1'000'003;

std::byte byte_at(uint64_t offset) {
  return static_cast<std::byte>(offset * 2654435761u >> 13);
}

class ReadQueues : public ::testing::TestWithParam<std::tuple<ReadEngine, bool>> {
 protected:
  ReadQueues() {
    std::vector<std::byte> bytes(kFileBytes);
    for (uint64_t i = 0; i < kFileBytes; ++i) bytes[i] = byte_at(i);
    const auto out = storage->create(path).value();
    EXPECT_TRUE(out->append(bytes).has_value());
    EXPECT_TRUE(out->close().has_value());
    file = std::get<1>(GetParam()) ? storage->open_direct(path).value() : storage->open(path).value();
    Result<std::unique_ptr<ReadQueue>> made = make_read_queue(std::get<0>(GetParam()), 4);
    if (made) queue = std::move(made).value();
  }

  QueuedRead read(uint64_t offset, uint64_t n, uint64_t tag) {
    const size_t bytes = pages_around(offset, n).length + kPageBytes;
    buffers.emplace_back(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes)), &std::free);
    return {file.get(), offset, n, {buffers.back().get(), bytes}, tag};
  }

  TemporaryDirectory folder;
  std::unique_ptr<Storage> storage = make_posix_storage();
  const Path path = folder.path() / "bytes";
  std::unique_ptr<ReadableFile> file;
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> buffers;
  std::unique_ptr<ReadQueue> queue;  // null where the system has no io_uring
};

TEST_P(ReadQueues, GiveEveryReadItsBytesOnce) {
  if (queue == nullptr) GTEST_SKIP() << "no io_uring here";
  std::vector<QueuedRead> reads;
  for (uint64_t i = 0; i < 40; ++i) reads.push_back(read(i * 24'001 % (kFileBytes - 9000), 1 + i * 211, i));
  reads.push_back(read(kFileBytes - 5, 5, 40));  // the file's last, partial page
  queue->submit(std::span(reads).first(7));
  queue->submit(std::span(reads).subspan(7));
  std::vector<FinishedRead> finished;
  while (finished.size() < reads.size()) queue->collect(finished, true);
  std::vector<int> seen(reads.size());
  for (const FinishedRead& done : finished) {
    ASSERT_TRUE(done.bytes.has_value()) << done.bytes.error().message;
    const QueuedRead& asked = reads[done.tag];
    ++seen[done.tag];
    ASSERT_EQ(done.bytes->size(), asked.n);
    for (uint64_t i = 0; i < asked.n; ++i) ASSERT_EQ((*done.bytes)[i], byte_at(asked.offset + i)) << i;
  }
  EXPECT_EQ(seen, std::vector<int>(reads.size(), 1));
  finished.clear();
  queue->collect(finished, true);  // nothing under way: does not wait
  EXPECT_TRUE(finished.empty());
}

TEST_P(ReadQueues, NameTheFileThatEndsTooSoon) {
  if (queue == nullptr) GTEST_SKIP() << "no io_uring here";
  std::filesystem::resize_file(path, 10'000);
  const std::vector<QueuedRead> reads = {read(8'000, 5'000, 1), read(50'000, 100, 2), read(2'000, 300, 3)};
  queue->submit(reads);
  std::vector<FinishedRead> finished;
  while (finished.size() < reads.size()) queue->collect(finished, true);
  for (const FinishedRead& done : finished) {
    if (done.tag == 3) {
      EXPECT_TRUE(done.bytes.has_value());
      continue;
    }
    ASSERT_FALSE(done.bytes.has_value());
    EXPECT_EQ(done.bytes.error().message,
              path.string() + (done.tag == 1 ? ": short read at offset 8000: 5000 bytes wanted, 2000 got"
                                             : ": short read at offset 50000: 100 bytes wanted, 0 got"));
  }
}

TEST_P(ReadQueues, EndTheirReadsBeforeTheyGo) {
  if (queue == nullptr) GTEST_SKIP() << "no io_uring here";
  std::vector<QueuedRead> reads;
  for (uint64_t i = 0; i < 30; ++i) reads.push_back(read(i * 30'000, 20'000, i));
  queue->submit(reads);
  queue.reset();
  buffers.clear();  // a read still under way would write to freed memory
}

INSTANTIATE_TEST_SUITE_P(All, ReadQueues,
                         ::testing::Combine(::testing::Values(ReadEngine::kUring, ReadEngine::kThreads),
                                            ::testing::Bool()),
                         [](const auto& i) {
                           return std::string(name_of(std::get<0>(i.param))) +
                                  (std::get<1>(i.param) ? "_direct" : "_buffered");
                         });

TEST(MakeReadQueue, RefusesADepthThatIsNone) {
  const auto queue = make_read_queue(ReadEngine::kAuto, 0);
  ASSERT_FALSE(queue.has_value());
  EXPECT_EQ(queue.error().message, "read queue depth: 0, expected 1 to 1024");
}

}  // namespace
}  // namespace forebay
