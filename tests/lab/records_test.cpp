// Records: added to, never edited; what crashes leave behind.
#include "lab/records.h"

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

MemoryStorage three_records() {
  MemoryStorage storage;
  Records records = Records::open(storage, "r").value();
  for (int i = 0; i < 3; ++i) EXPECT_OK(records.append("started", {{"cell", "c" + std::to_string(i)}}));
  return storage;
}

TEST(Records, AreReadBackAsTheyWere) {
  MemoryStorage storage = three_records();
  Records records = Records::open(storage, "r").value();
  ASSERT_EQ(records.all().size(), 3u);
  EXPECT_EQ(records.all()[1]["cell"], "c1");
  EXPECT_EQ(records.all()[2]["before"], records.all()[1]["hash"]);
  EXPECT_EQ(records.last("started", "cell", "c1"), &records.all()[1]);
  EXPECT_EQ(records.last("ended", "cell", "c1"), nullptr);
  const std::string before = storage.get("r");
  ASSERT_OK(records.append("ended", {{"cell", "c1"}, {"x", 0.1}}));
  EXPECT_TRUE(storage.get("r").starts_with(before));
  EXPECT_EQ(Records::open(storage, "r").value().all().size(), 4u);
}

TEST(Records, AnEditIsFound) {
  const MemoryStorage original = three_records();
  const std::string text = original.get("r");
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"c0", "cX"}, {"c1", "c2"}, {"c2", "c1"}}) {
    std::string edited = text;
    edited.replace(edited.find(from), 2, to);
    MemoryStorage storage;
    storage.put("r", edited);
    EXPECT_TRUE(fails_with(Records::open(storage, "r"), Code::kCorrupt, "r:", "hash"));
  }
  // A line taken out.
  MemoryStorage storage;
  const size_t first = text.find('\n') + 1;
  storage.put("r", text.substr(0, first) + text.substr(text.find('\n', first) + 1));
  EXPECT_TRUE(fails_with(Records::open(storage, "r"), Code::kCorrupt, "r:2", "follow"));
  storage.put("r", text.substr(0, first) + "junk\n" + text.substr(first));
  EXPECT_TRUE(fails_with(Records::open(storage, "r"), Code::kCorrupt, "r:3"));
}

TEST(Records, ACrashAtAnyByteLosesAtMostTheLine) {
  const std::string text = three_records().get("r");
  for (size_t n = 0; n <= text.size(); ++n) {
    MemoryStorage storage;
    storage.put("r", text.substr(0, n));
    Result<Records> records = Records::open(storage, "r");
    ASSERT_OK(records) << n;
    const size_t whole = records->all().size();
    EXPECT_LE(whole, 3u);
    ASSERT_OK(records->append("ended", {{"cell", "z"}}));
    const Result<Records> again = Records::open(storage, "r");
    ASSERT_OK(again) << n;
    EXPECT_GE(again->all().size(), whole + 1);
    EXPECT_EQ(again->all().back()["cell"], "z");
    // Nothing of what was there has gone.
    EXPECT_TRUE(storage.get("r").starts_with(text.substr(0, n)));
    // Dying between the line's end and the next record is no worse.
    storage.put("r", text.substr(0, n) + "\n");
    EXPECT_OK(Records::open(storage, "r"));
  }
}

TEST(Records, FaultsAreErrors) {
  for (const StorageOp op : {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose}) {
    MemoryStorage below;
    FaultyStorage storage(below, {.op = op, .fail_at = 1});
    Records records = Records::open(storage, "r").value();
    EXPECT_FALSE(records.append("started", {{"cell", "a"}}).has_value());
    EXPECT_TRUE(records.all().empty());
  }
}

}  // namespace
}  // namespace forebay::lab
