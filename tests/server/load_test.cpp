// Many clients at once, some of which leave: every answer is the one that it would be alone. A small version
// of bench/serve_load.py, which docs/api.md has numbers of.
#include <mutex>
#include <random>
#include <thread>

#include "test_server.h"

namespace forebay {
namespace {

Json question(int i) {
  Json messages = Json::array();
  if (i % 3 == 0) messages.push_back({{"role", "system"}, {"content", "Answer briefly and with care."}});
  messages.push_back(user("What is " + std::to_string(10 + 7 * i) + " + " + std::to_string(3 + i) + "?"));
  if (i % 4 == 1) {
    std::string text = "Read this first. ";
    for (int k = 0; k < 12 * (i % 5); ++k) text += "The quick brown fox jumps over the lazy dog. ";
    messages.insert(messages.begin(), user(text));
  }
  Json body = greedy_chat(std::move(messages));
  body["max_tokens"] = 24;
  if (i % 2 == 1) body["reasoning_effort"] = "none";
  return body;
}

std::string said(const Json& reply) {
  const Json& message = reply["choices"][0]["message"];
  return message.value("reasoning_content", "") + "|" + message["content"].get<std::string>();
}

TEST(Load, EveryAnswerIsItsSoloAnswer) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  constexpr int kQuestions = 12, kClients = 6, kRequests = 5;
  std::vector<std::string> want;
  {
    ServerOptions options;
    options.scheduler.n_slots = 1;
    TestServer alone(std::move(options));
    httplib::Client client = alone.client();
    for (int i = 0; i < kQuestions; ++i)
      want.push_back(said(post(client, "/v1/chat/completions", question(i)).body));
  }
  ServerOptions options;
  options.scheduler.n_slots = 3;
  options.scheduler.prompt_share = 64;
  TestServer server(std::move(options));
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<unsigned>(c));
      httplib::Client client = server.client();
      for (int r = 0; r < kRequests; ++r) {
        const int i = static_cast<int>(random() % kQuestions);
        Json body = question(i);
        const unsigned way = random() % 4;
        std::string got;
        if (way == 0) {
          // Leaves after the first bytes.
          body["stream"] = true;
          httplib::Request request;
          request.method = "POST";
          request.path = "/v1/chat/completions";
          request.body = body.dump();
          request.headers.emplace("Content-Type", "application/json");
          request.content_receiver = [](const char*, size_t, uint64_t, uint64_t) { return false; };
          httplib::Client leaving = server.client();
          (void)leaving.send(request);
          continue;
        }
        if (way == 1) {
          const Joined all = join_chat(post_stream(client, "/v1/chat/completions", body));
          got = all.reasoning + "|" + all.content;
        } else {
          got = said(post(client, "/v1/chat/completions", body).body);
        }
        const std::lock_guard lock(mutex);
        if (got != want[i]) wrong.push_back(std::to_string(i) + ": " + got + " instead of " + want[i]);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(wrong.empty()) << wrong[0];
  const SchedulerStats stats = server.server->status().stats;
  EXPECT_EQ(stats.n_failed, 0);
  EXPECT_LT(stats.n_windows, stats.n_generated) << "several answers in one window";
}

}  // namespace
}  // namespace forebay
