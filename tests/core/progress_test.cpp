#include "core/progress.h"

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace forebay {
namespace {

using namespace std::chrono_literals;

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions options(ProgressStyle style, ProgressUnit unit = ProgressUnit::kItems) {
    return {.style = style, .unit = unit, .out = out_.get(), .now = [this] { return now_; }};
  }
  std::string written() const {
    std::string text(static_cast<size_t>(std::ftell(out_.get())), '\0');
    std::rewind(out_.get());
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out_.get()), text.size());
    return text;
  }

  std::chrono::steady_clock::time_point now_{};
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{std::tmpfile(), std::fclose};
};

size_t count(const std::string& text, char c) {
  return std::count(text.begin(), text.end(), c);
}

TEST_F(ProgressTest, TextHasShareAmountRateAndTimeLeft) {
  EXPECT_EQ(progress_text("convert", 1ull << 30, 4ull << 30, ProgressUnit::kBytes, 2s, "blk.3"),
            "convert  25 %  1.00 GiB of 4.00 GiB  512 MiB/s  6.0 s left  blk.3");
  EXPECT_EQ(progress_text("eval", 1500, 1500, ProgressUnit::kItems, 3s, ""),
            "eval  100 %  1,500 of 1,500  500.0/s  in 3.0 s");
  EXPECT_EQ(progress_text("scan", 10, 0, ProgressUnit::kItems, 100ms, ""), "scan  10")
      << "total and rate unknown";
  EXPECT_EQ(progress_text("scan", 999, 1000, ProgressUnit::kItems, 0s, ""), "scan  99 %  999 of 1,000")
      << "100 % only when done";
}

TEST_F(ProgressTest, BarIsRedrawnAtMostTenTimesASecond) {
  {
    Progress progress("work", 1000, options(ProgressStyle::kBar));
    for (int i = 0; i < 1000; ++i) {
      progress.advance(1);
      now_ += 1ms;  // one second in all
    }
  }
  const std::string text = written();
  EXPECT_LE(count(text, '\r'), 12u);
  EXPECT_GE(count(text, '\r'), 9u);
  EXPECT_EQ(count(text, '\n'), 1u);
  EXPECT_NE(text.find("[####################] work  100 %"), std::string::npos) << text;
}

TEST_F(ProgressTest, LinesComeEveryFewSecondsAndAtTheEnd) {
  Progress progress("work", 100, options(ProgressStyle::kLines));
  for (int i = 0; i < 100; ++i) {
    now_ += 120ms;  // twelve seconds in all
    progress.advance(1);
  }
  progress.finish();
  progress.finish();
  progress.advance(1);
  const std::string text = written();
  EXPECT_EQ(count(text, '\n'), 3u) << text;
  EXPECT_EQ(count(text, '\r'), 0u);
  EXPECT_EQ(count(text, '\x1b'), 0u);
}

TEST_F(ProgressTest, LongDetailIsCutBetweenCharacters) {
  {
    Progress progress("work", 0, options(ProgressStyle::kBar));
    std::string detail;
    for (int i = 0; i < 100; ++i) detail += "\u00e9";
    progress.set_detail(detail);
  }
  const std::string text = written();
  const std::string line = text.substr(1, text.find('\x1b') - 1);
  EXPECT_LE(line.size(), 79u);
  EXPECT_EQ(count(line, '\xc3'), count(line, '\xa9'));
}

TEST_F(ProgressTest, AutoOnAFileMeansLinesAndSilentMeansNothing) {
  { Progress progress("work", 3, options(ProgressStyle::kSilent)); }
  EXPECT_EQ(written(), "");
  { Progress progress("work", 3, options(ProgressStyle::kAuto)); }
  EXPECT_EQ(written(), "work  0 %  0 of 3\n");
}

}  // namespace
}  // namespace forebay
