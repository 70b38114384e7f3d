#include "core/log.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace forebay {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { log::set_level(log::Level::kInfo); }
};

TEST_F(LogTest, WritesPlainLinesToStderr) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log::warn("{} of {} pages", 3, 8);
  log::info("braces {{}} stay");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: 3 of 8 pages\ninfo: braces {} stay\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(LogTest, LevelsBelowTheThresholdAreSilent) {
  log::set_level(log::Level::kWarn);
  EXPECT_FALSE(log::enabled(log::Level::kInfo));
  EXPECT_TRUE(log::enabled(log::Level::kError));
  testing::internal::CaptureStderr();
  log::info("no");
  log::warn("yes");
  log::set_level(log::Level::kOff);
  log::write(log::Level::kError, "no");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: yes\n");
}

TEST_F(LogTest, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string body(100, 'x');
  testing::internal::CaptureStderr();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < kLines; ++i) log::warn("{}", body);
      });
  }
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string line = "warning: " + body + "\n";
  ASSERT_EQ(text.size(), line.size() * kThreads * kLines);
  for (size_t at = 0; at < text.size(); at += line.size())
    ASSERT_EQ(text.compare(at, line.size(), line), 0) << at;
}

}  // namespace
}  // namespace forebay
