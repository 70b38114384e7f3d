#include "core/free_port.h"

#include <set>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(FreePort, DiffersEachTimeAndIsNoneOfOutgoingConnections) {
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    const Result<int> port = free_port();
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_LT(*port, 32768);
    ports.insert(*port);
  }
  EXPECT_EQ(ports.size(), 50u);
}

}  // namespace
}  // namespace forebay
