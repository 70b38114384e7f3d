// What outlives a server: conversations under a name, the cache directory, and what its end cut off.
#include "support/temporary_directory.h"
#include "test_server.h"

namespace forebay {
namespace {

using std::chrono::milliseconds;

class ServerState : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
  /// As forebay serve --cache-dir.
  TestServer cached(ServerOptions options = {}, int64_t chunk = 128) {
    EngineOptions engine = TestServer::engine_options(1024, chunk);
    engine.cache_dir = (directory_.path() / "cache").string();
    options.session_dir = engine.cache_dir + "/named";
    return TestServer(std::move(options), engine);
  }

  TemporaryDirectory directory_;
};

const std::string kSystem =
    "You keep a machine room in order. Read before you answer, answer in one sentence, and never guess: when "
    "you do not know a number, read the file that has it.";

Json conversation(const std::string& question) {
  return Json::array({{{"role", "system"}, {"content", kSystem}}, user(question)});
}

TEST_F(ServerState, SessionsAreSavedByNameAndGoOnInAnotherServer) {
  TemporaryDirectory directory;
  ServerOptions options;
  options.session_dir = (directory.path() / "named").string();
  Json body = greedy_chat(Json::array({user("What is 37 + 58?")}));
  Answered first;
  {
    TestServer server(options);
    httplib::Client client = server.client();
    first = post(client, "/v1/chat/completions", body);
    const Answered saved = post(client, "/v1/sessions/save", {{"name", "mine"}});
    ASSERT_EQ(saved.status, 200) << saved.body;
    EXPECT_EQ(saved.body["tokens"].get<int64_t>(), first.body["usage"]["total_tokens"].get<int64_t>() - 1);
    for (const char* bad : {"", "../mine", "a/b", "a.b", "\u00e9"})
      EXPECT_EQ(post(client, "/v1/sessions/save", {{"name", bad}}).status, 400) << bad;
    EXPECT_EQ(post(client, "/v1/sessions/restore", {{"name", "yours"}}).status, 404);
    EXPECT_EQ(post(client, "/v1/sessions/save", {{"name", "x"}, {"slot", 99}}).status, 400);
  }
  TestServer server(options);
  httplib::Client client = server.client();
  const Json listed = Json::parse(client.Get("/v1/sessions")->body);
  ASSERT_EQ(listed["sessions"].size(), 1u) << listed;
  EXPECT_EQ(listed["sessions"][0]["name"], "mine");
  ASSERT_EQ(post(client, "/v1/sessions/restore", {{"name", "mine"}}).status, 200);
  body["messages"].push_back(first.body["choices"][0]["message"]);
  body["messages"].push_back(user("And 12 + 30?"));
  const Answered next = post(client, "/v1/chat/completions", body);
  EXPECT_GE(next.body["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>(),
            first.body["usage"]["total_tokens"].get<int64_t>() - 1)
      << next.body;
  TestServer without;
  httplib::Client other = without.client();
  EXPECT_EQ(post(other, "/v1/sessions/save", {{"name", "mine"}}).status, 501);
}

// Case 17: A, then B, a restart, and A goes on.
TEST_F(ServerState, ARestartInTheMiddleOfConversationsReadsLittleAgain) {
  std::vector<Json> talks = {conversation("What is 37 + 58?"), conversation("What is 12 + 30?")};
  std::vector<int64_t> n_prompt;
  {
    TestServer server = cached();
    httplib::Client client = server.client();
    for (Json& talk : talks) {
      const Answered answered = post(client, "/v1/chat/completions", greedy_chat(talk));
      ASSERT_EQ(answered.status, 200) << answered.body;
      n_prompt.push_back(answered.body["usage"]["prompt_tokens"]);
      talk.push_back(answered.body["choices"][0]["message"]);
      talk.push_back(user("And 11 + 22?"));
    }
    EXPECT_TRUE(soon([&] { return status_of(client)["cache"]["saved"] >= 2; })) << status_of(client);
  }
  TestServer plain;
  TestServer server = cached();
  httplib::Client client = server.client(), reference = plain.client();
  EXPECT_GE(status_of(client)["cache"]["files"], 2);
  for (size_t i = 0; i < talks.size(); ++i) {
    const Answered answered = post(client, "/v1/chat/completions", greedy_chat(talks[i]));
    ASSERT_EQ(answered.status, 200) << answered.body;
    // What its first prompt had in common with this one, up to where the answer began.
    EXPECT_GE(cached_tokens(answered), n_prompt[i] - 16) << status_of(client);
    EXPECT_EQ(answered.body["choices"],
              post(reference, "/v1/chat/completions", greedy_chat(talks[i])).body["choices"]);
  }
  EXPECT_TRUE(soon([&] { return status_of(client)["tokens"]["loaded"] >= n_prompt[0] + n_prompt[1] - 32; }))
      << status_of(client);
  // Case 30: one definition of what was reused.
  const Json tokens = status_of(client)["tokens"];
  EXPECT_EQ(tokens["reused"].get<int64_t>() + tokens["prefilled"].get<int64_t>(),
            tokens["prompt"].get<int64_t>());
  const std::string metrics = client.Get("/metrics")->body;
  EXPECT_NE(metrics.find("forebay_cache_files_total{event=\"saved\"}"), std::string::npos) << metrics;
}

TEST_F(ServerState, WhatTheEndCutsOffIsFoundAgain) {
  Json endless = greedy_chat(conversation("What is 37 + 58?"));
  endless["max_tokens"] = 800;
  endless["logit_bias"] = {{"300", 100}};
  std::string long_text;
  for (int i = 0; i < 600; ++i) long_text += "word ";
  const Json reading = greedy_chat(Json::array({user(long_text)}));
  int64_t n_read = 0, n_said = 0;
  {
    ServerOptions options;
    options.scheduler.n_slots = 2;
    options.scheduler.before_step = [] { std::this_thread::sleep_for(milliseconds(15)); };
    TestServer server = cached(std::move(options), 64);
    const auto slot = [&](size_t i) { return server.server->status().slots[i]; };
    std::vector<std::thread> clients;
    const auto ask = [&](const Json& body) {
      clients.emplace_back([&, body] {
        httplib::Client client = server.client();
        const auto result = client.Post("/v1/chat/completions", body.dump(), "application/json");
        // What there is of the answer, or that there is none.
        EXPECT_TRUE(!result || result->status == 200 || result->status == 503) << result->body;
      });
    };
    ask(endless);
    ASSERT_TRUE(soon([&] { return slot(0).phase == Phase::kDecode && slot(0).n_generated > 3; }));
    ask(reading);
    ASSERT_TRUE(soon([&] { return slot(1).phase == Phase::kPrompt && slot(1).n_prompt_done > 100; }));
    server.server->stop(milliseconds(0));
    for (std::thread& client : clients) client.join();
    const SchedulerStatus last = server.server->status();
    EXPECT_EQ(last.stats.n_cancelled, 2);
    n_said = slot(0).n_tokens;
    n_read = slot(1).n_tokens;
    EXPECT_GT(n_said, 0);
    EXPECT_GT(n_read, 100);
  }
  TestServer server = cached();
  httplib::Client client = server.client();
  // By the tokens of its prompt: reading goes on where it was, answering where the answer begins.
  const Answered read = post(client, "/v1/chat/completions", reading);
  EXPECT_GE(cached_tokens(read), n_read) << status_of(client);
  endless["max_tokens"] = 1;
  const Answered said = post(client, "/v1/chat/completions", endless);
  EXPECT_GE(cached_tokens(said), said.body["usage"]["prompt_tokens"].get<int64_t>() - 16)
      << status_of(client);
  // By its name, with what was said so far.
  const Json listed = Json::parse(client.Get("/v1/sessions")->body)["sessions"];
  ASSERT_EQ(listed.size(), 2u) << listed;
  EXPECT_EQ(text_of(listed[0]["name"]), "interrupted-0");
  const Answered restored = post(client, "/v1/sessions/restore", {{"name", "interrupted-0"}});
  ASSERT_EQ(restored.status, 200) << restored.body;
  EXPECT_EQ(restored.body["tokens"], n_said);
}

}  // namespace
}  // namespace forebay
