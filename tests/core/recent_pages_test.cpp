#include "core/recent_pages.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/page_range.h"

namespace forebay {
namespace {

/// Bytes of an imagined mapping: nothing reads them.
std::span<const std::byte> bytes_at(size_t page, size_t offset = 0, size_t n = 1) {
  return {reinterpret_cast<const std::byte*>((page + 1000) * kPageBytes + offset), n};
}

std::vector<size_t> trimmed(RecentPages& pages) {
  std::vector<size_t> gone;
  pages.trim([&](std::span<const std::byte> page) {
    EXPECT_EQ(page.size(), kPageBytes);
    gone.push_back(reinterpret_cast<uintptr_t>(page.data()) / kPageBytes - 1000);
  });
  return gone;
}

TEST(RecentPages, GivesUpThoseUsedLongestAgo) {
  RecentPages pages(2);
  pages.use(bytes_at(1));
  pages.use(bytes_at(2));
  EXPECT_TRUE(trimmed(pages).empty());
  pages.use(bytes_at(1, 100));  // again
  pages.use(bytes_at(3));
  EXPECT_EQ(trimmed(pages), std::vector<size_t>{2});
  pages.use(bytes_at(4));
  pages.use(bytes_at(5));
  EXPECT_EQ(trimmed(pages), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(pages.size(), 2u);
}

TEST(RecentPages, ARowMayStraddlePages) {
  RecentPages pages(0);
  pages.use(bytes_at(7, kPageBytes - 1, 2));
  EXPECT_EQ(trimmed(pages), (std::vector<size_t>{7, 8}));
}

TEST(RecentPages, NothingIsGivenUpBeforeTrim) {
  RecentPages pages(1);
  for (size_t i = 0; i < 100; ++i) pages.use(bytes_at(i));
  EXPECT_EQ(pages.size(), 100u);
  EXPECT_EQ(trimmed(pages).size(), 99u);
}

TEST(RecentPages, StaysRightThroughManyUses) {
  RecentPages pages(8);
  std::set<size_t> held;
  uint64_t random = 1;
  for (int i = 0; i < 20000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t page = (random >> 40) % 12;
    pages.use(bytes_at(page));
    held.insert(page);
    for (const size_t gone : trimmed(pages)) EXPECT_EQ(held.erase(gone), 1u);
    EXPECT_LE(pages.size(), 8u);
    EXPECT_EQ(pages.size(), held.size());
    EXPECT_TRUE(held.contains(page)) << "the page just used is the last to go";
  }
}

}  // namespace
}  // namespace forebay
