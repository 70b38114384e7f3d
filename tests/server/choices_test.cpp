// Several choices of one prompt: read once, and each is what it would be alone.
#include "test_server.h"

namespace forebay {
namespace {

class Choices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

const std::string kText =
    "The keeper of the light wrote down the weather, the ships that passed and the oil that was left. ";

Json sampled(uint64_t seed, int n) {
  return {{"messages", Json::array({user(kText + kText + kText + "What is 37 + 58?")})},
          {"temperature", 1.2},
          {"seed", seed},
          {"n", n},
          {"max_tokens", 20},
          {"logprobs", true}};
}

// With places for all, for some, and for one.
TEST_F(Choices, OnePromptIsReadOnceAndEachIsItsSoloRun) {
  constexpr int kChoices = 5;
  std::vector<Json> alone;
  {
    TestServer server;
    httplib::Client client = server.client();
    for (int i = 0; i < kChoices; ++i) {
      const Answered one = post(client, "/v1/chat/completions", sampled(40 + i, 1));
      ASSERT_EQ(one.status, 200) << one.body;
      alone.push_back(one.body["choices"][0]);
    }
  }
  for (int n_slots : {8, 3, 1}) {
    ServerOptions options;
    options.scheduler.n_slots = n_slots;
    TestServer server(std::move(options));
    httplib::Client client = server.client();
    const Answered all = post(client, "/v1/chat/completions", sampled(40, kChoices));
    ASSERT_EQ(all.status, 200) << all.body;
    ASSERT_EQ(all.body["choices"].size(), static_cast<size_t>(kChoices));
    for (int i = 0; i < kChoices; ++i) {
      Json want = alone[i];
      want["index"] = i;
      EXPECT_EQ(all.body["choices"][i], want) << n_slots << " places";
    }
    const SchedulerStats stats = server.server->status().stats;
    EXPECT_EQ(stats.n_prefilled, all.body["usage"]["prompt_tokens"].get<int64_t>()) << n_slots << " places";
    EXPECT_EQ(stats.n_prompt, kChoices * stats.n_prefilled);
    EXPECT_EQ(all.body["usage"]["completion_tokens"], stats.n_generated);
  }
}

// What another conversation has read is not read again, and stays the other one's.
TEST_F(Choices, ASystemPromptIsCopiedBetweenConversations) {
  TestServer server, fresh;
  httplib::Client client = server.client(), reference = fresh.client();
  const auto ask = [](const std::string& question) {
    return greedy_chat(
        Json::array({{{"role", "system"}, {"content", kText + kText + kText}}, user(question)}));
  };
  const std::string long_question = kText + kText + kText + kText + "What is 37 + 58?";
  const Json other = ask("Define river, then say what is 1 + 1.");
  const Answered first = post(client, "/v1/chat/completions", ask(long_question));
  const Answered second = post(client, "/v1/chat/completions", other);
  EXPECT_GT(cached_tokens(second), 60) << second.body["usage"] << status_of(client);
  EXPECT_EQ(second.body["choices"], post(reference, "/v1/chat/completions", other).body["choices"]);
  // The first goes on as if nothing had been taken.
  Json more = ask(long_question);
  more["messages"].push_back(first.body["choices"][0]["message"]);
  more["messages"].push_back(user("And 12 + 30?"));
  const Answered third = post(client, "/v1/chat/completions", more);
  EXPECT_GE(cached_tokens(third), first.body["usage"]["total_tokens"].get<int64_t>() - 1)
      << status_of(client);
  EXPECT_EQ(third.body["choices"], post(reference, "/v1/chat/completions", more).body["choices"]);
}

TEST_F(Choices, TheOthersGoOnWhenTheFirstFails) {
  std::atomic<bool> broken = true;
  ServerOptions options;
  options.scheduler.before_step = [&] {
    if (broken.exchange(false)) throw std::runtime_error("injected");
  };
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  EXPECT_EQ(post(client, "/v1/chat/completions", sampled(1, 3)).status, 500);
  EXPECT_TRUE(soon([&] {
    const SchedulerStats stats = server.server->status().stats;
    return stats.n_failed + stats.n_cancelled == 3;
  }));
  EXPECT_EQ(post(client, "/v1/chat/completions", sampled(1, 3)).status, 200);
}

}  // namespace
}  // namespace forebay
