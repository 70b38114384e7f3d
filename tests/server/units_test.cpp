// The parts that need no model.
#include <gtest/gtest.h>

#include "server/access.h"
#include "server/fair_queue.h"
#include "server/json_fields.h"
#include "server/token_memory.h"

namespace forebay {
namespace {

TEST(FairQueue, ClientsTakeTurns) {
  FairQueue<int> queue;
  for (int i : {1, 2, 3}) queue.push("a", i);
  queue.push("b", 10);
  queue.push("b", 11);
  queue.push("c", 20);
  EXPECT_EQ(queue.size(), 6u);
  queue.remove_if([](int i) { return i == 2 || i == 20; });
  std::vector<int> order;
  while (const auto item = queue.pop()) order.push_back(*item);
  EXPECT_EQ(order, (std::vector<int>{1, 10, 3, 11}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, WhoIsNotReadyLetsOthersPass) {
  FairQueue<int> queue;
  queue.push("a", 1);
  queue.push("a", 2);
  queue.push("b", 10);
  const auto even = [](int i) { return i % 2 == 0; };
  EXPECT_EQ(queue.pop(even), 10);
  EXPECT_EQ(queue.pop(even), std::nullopt) << "2 comes after 1";
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(even), 2);
}

TEST(Access, SecretsAndHosts) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "abcd"));
  EXPECT_FALSE(equal_secrets("", "a"));
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("localhost") && is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("127.evil.example") || is_loopback("10.0.0.1"));
  const AccessRules rules{"", "", true};
  const auto from = [&](const char* origin, const char* host) {
    return check_access(rules, {{}, {}, origin, host}, true);
  };
  EXPECT_EQ(from("", "localhost:8080"), Access::kGranted);
  EXPECT_EQ(from("http://localhost:8080", "localhost:8080"), Access::kGranted);
  EXPECT_EQ(from("http://localhost:9000", "localhost:8080"), Access::kForeignPage);
  EXPECT_EQ(from("null", "localhost:8080"), Access::kForeignPage);
  EXPECT_EQ(from("", "rebound.example:8080"), Access::kForeignHost);
  EXPECT_EQ(from("", "[::1]:8080"), Access::kGranted);
}

TEST(JsonFields, NameTheFieldAndTheValue) {
  const Json json = *parse_object(R"({"a":{"n":"x"},"f":2.0,"big":9223372036854775808})");
  const Fields inner(json["a"], "a");
  EXPECT_EQ(inner.integer("n", 0, 5).error().message, "a.n: got \"x\", expected an integer from 0 to 5");
  EXPECT_EQ(**Fields(json).integer("f", 0, 5), 2);
  EXPECT_FALSE(Fields(json).integer("big", 0, std::numeric_limits<int64_t>::max()).has_value());
  EXPECT_FALSE(Fields(json).integer("none", 0, 5)->has_value());
}

TEST(TokenMemory, KnowsTheLongestBeginning) {
  TokenMemory memory;
  memory.remember("one", {1});
  memory.remember("one two", {1, 2});
  memory.remember("other", {3});
  EXPECT_EQ(memory.find("one two three")->ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(memory.find("one 2")->n_bytes, 3u);
  EXPECT_FALSE(memory.find("on").has_value());
}

}  // namespace
}  // namespace forebay
