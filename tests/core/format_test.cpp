#include "core/format.h"

#include <limits>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(Format, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(10 * 1024), "10.0 KiB");
  EXPECT_EQ(human_bytes(1'320'702'444), "1.23 GiB");
  EXPECT_EQ(human_bytes((1ull << 20) - 1), "1.00 MiB") << "not 1024 KiB";
  EXPECT_EQ(human_bytes(1000ull << 20), "1000 MiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1.00 k");
  EXPECT_EQ(human_count(999'999), "1.00 M");
  EXPECT_EQ(human_count(35'100'000'000), "35.1 G");
  EXPECT_EQ(human_count(UINT64_MAX), "18.4 E");
}

TEST(Format, GroupedDigits) {
  EXPECT_EQ(grouped_digits(0), "0");
  EXPECT_EQ(grouped_digits(999), "999");
  EXPECT_EQ(grouped_digits(1000), "1,000");
  EXPECT_EQ(grouped_digits(1234567), "1,234,567");
  EXPECT_EQ(grouped_digits(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(Format, Durations) {
  using Seconds = std::chrono::duration<double>;
  EXPECT_EQ(human_duration(Seconds(0.0004)), "0 ms");
  EXPECT_EQ(human_duration(Seconds(0.85)), "850 ms");
  EXPECT_EQ(human_duration(Seconds(0.9996)), "1.0 s");
  EXPECT_EQ(human_duration(Seconds(12.34)), "12.3 s");
  EXPECT_EQ(human_duration(Seconds(59.96)), "1 min 00 s");
  EXPECT_EQ(human_duration(Seconds(200)), "3 min 20 s");
  EXPECT_EQ(human_duration(Seconds(3599.6)), "1 h 00 min");
  EXPECT_EQ(human_duration(Seconds(7500)), "2 h 05 min");
  EXPECT_EQ(human_duration(Seconds(-1)), "?");
  EXPECT_EQ(human_duration(Seconds(std::numeric_limits<double>::infinity())), "?");
}

}  // namespace
}  // namespace forebay
