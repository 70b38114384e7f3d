#include "core/interrupt.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/result_matchers.h"

namespace forebay {
namespace {

using namespace std::chrono_literals;

bool requested_soon(const Interrupt& interrupt) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!interrupt.requested() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  return interrupt.requested();
}

TEST(Interrupt, FirstSignalRequestsAStop) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Interrupt interrupt;
    const std::stop_token token = interrupt.token();
    EXPECT_OK(check_stop(token));
    ::raise(signal);
    EXPECT_TRUE(requested_soon(interrupt));
    EXPECT_TRUE(fails_with(check_stop(token), Code::kCancelled, "interrupted"));
  }
}

TEST(Interrupt, EndsWithoutASignalAndRestoresTheHandlers) {
  static volatile std::sig_atomic_t n_caught = 0;
  const auto old = std::signal(SIGINT, [](int) { n_caught = n_caught + 1; });
  { Interrupt interrupt; }
  {
    Interrupt interrupt;
    ::raise(SIGINT);
    EXPECT_TRUE(requested_soon(interrupt));
  }
  EXPECT_EQ(n_caught, 0);
  ::raise(SIGINT);
  EXPECT_EQ(n_caught, 1);
  std::signal(SIGINT, old);
}

TEST(InterruptDeathTest, SecondSignalExitsWith130) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        Interrupt interrupt;
        ::raise(SIGINT);
        ::raise(SIGINT);
        std::this_thread::sleep_for(10s);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace forebay
