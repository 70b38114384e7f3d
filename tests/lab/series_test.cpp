// A metrics file, whole and while it grows.
#include "lab/series.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

void append(MemoryStorage& storage, const std::string& text) {
  storage.put("m", (storage.exists("m") ? storage.get("m") : "") + text);
}

TEST(Series, GrowsLineByLine) {
  MemoryStorage storage;
  SeriesReader reader(storage, "m");
  EXPECT_EQ(reader.poll().value(), 0);  // not there yet
  append(storage, "{\"step\":1,\"gap\":2.5}\n{\"step\":2,");
  EXPECT_EQ(reader.poll().value(), 1);
  EXPECT_EQ(reader.poll().value(), 0);
  append(storage, "\"gap\":3,\"loss\":null}\nno json\n{\"step\":\"3\"}\n[1]\n");
  EXPECT_EQ(reader.poll().value(), 1);
  EXPECT_EQ(reader.series().last_step(), 2);
  EXPECT_EQ(reader.series().points("gap").value, (std::vector<double>{2.5, 3}));
  EXPECT_EQ(reader.series().points("gap", 2).step, (std::vector<double>{2}));
  EXPECT_TRUE(reader.series().points("loss").value.empty());
  EXPECT_TRUE(std::isnan(reader.series().rows().at(2).at("loss")));
  // A run that goes on from an earlier checkpoint writes steps again.
  append(storage, "{\"step\":2,\"gap\":7}\n");
  EXPECT_EQ(reader.poll().value(), 1);
  EXPECT_EQ(reader.series().points("gap").value, (std::vector<double>{2.5, 7}));
  // A file that starts again.
  storage.put("m", "{\"step\":1,\"gap\":1}\n");
  EXPECT_EQ(reader.poll().value(), 1);
  EXPECT_EQ(reader.series().last_step(), 1);
}

}  // namespace
}  // namespace forebay::lab
