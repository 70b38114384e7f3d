// Clients that leave, engines that hang, many connections, keys, and the end.
#include <atomic>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/faulty_storage.h"
#include "support/temporary_directory.h"
#include "test_server.h"

namespace forebay {
namespace {

using std::chrono::milliseconds;

class Lifecycle : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
};

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}
void send_text(int fd, const std::string& text) {
  EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}
std::string request_text(const Json& body) {
  const std::string text = body.dump();
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(text.size()) + "\r\n\r\n" + text;
}

// Case 65: in the queue, in the prompt, while decoding with and without a stream.
TEST_F(Lifecycle, WorkStopsWhenTheClientHasGone) {
  std::atomic<int> delay_ms = 0;
  ServerOptions options;
  options.scheduler.n_slots = 1;
  options.scheduler.before_step = [&] { std::this_thread::sleep_for(milliseconds(delay_ms)); };
  TestServer server(std::move(options), 2048, 64);
  const auto phase = [&] { return server.server->status().slots[0].phase; };
  const auto idle = [&] { return phase() == Phase::kEnded && server.server->status().n_queued == 0; };
  delay_ms = 20;

  Json endless = greedy_chat(Json::array({user("Define river.")}));
  endless["max_tokens"] = 1500;
  endless["logit_bias"] = {{"300", 100}};
  std::string long_text;
  for (int i = 0; i < 900; ++i) long_text += "word ";
  const Json long_prompt = greedy_chat(Json::array({user(long_text)}));

  for (const bool stream : {false, true}) {
    endless["stream"] = stream;
    const int decoding = connect_to(server.server->port());
    send_text(decoding, request_text(endless));
    ASSERT_TRUE(soon([&] { return phase() == Phase::kDecode; }));
    const int queued = connect_to(server.server->port());
    send_text(queued, request_text(endless));
    ASSERT_TRUE(soon([&] { return server.server->status().n_queued == 1; }));
    ::close(queued);
    EXPECT_TRUE(soon([&] { return server.server->status().n_queued == 0; }));
    EXPECT_EQ(phase(), Phase::kDecode) << "the other one goes on";
    ::close(decoding);
    EXPECT_TRUE(soon(idle));
  }
  const int reading = connect_to(server.server->port());
  send_text(reading, request_text(long_prompt));
  ASSERT_TRUE(soon([&] { return phase() == Phase::kPrompt; }));
  ::close(reading);
  EXPECT_TRUE(soon(idle));
  EXPECT_EQ(server.server->status().stats.n_cancelled, 5);

  delay_ms = 0;
  httplib::Client client = server.client();
  const Answered next =
      post(client, "/v1/chat/completions", greedy_chat(Json::array({user("What is 37 + 58?")})));
  EXPECT_EQ(next.body["choices"][0]["message"]["content"], "95") << next.body;
}

// Case 67.
TEST_F(Lifecycle, AStuckPassIsReportedAndTheNextRequestWorks) {
  std::atomic<bool> stuck = true;
  ServerOptions options;
  options.stall_seconds = 1;
  options.scheduler.before_step = [&] {
    while (stuck) std::this_thread::sleep_for(milliseconds(5));
  };
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  const Json question = greedy_chat(Json::array({user("What is 37 + 58?")}));
  const auto began = std::chrono::steady_clock::now();
  const Answered report = post(client, "/v1/chat/completions", question);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_EQ(report.status, 503);
  EXPECT_NE(report.body["error"]["message"].get<std::string>().find("stuck"), std::string::npos)
      << report.body;
  EXPECT_EQ(client.Get("/health")->status, 503);
  stuck = false;
  EXPECT_EQ(post(client, "/v1/chat/completions", question).body["choices"][0]["message"]["content"], "95");
  EXPECT_EQ(client.Get("/health")->status, 200);
}

// Case 67: a read that hangs, of experts in a pass or of a state that a prompt goes on from, and a write that
// the next prompt has to wait for.
TEST_F(Lifecycle, ADiskThatHangsIsReportedAndTheNextRequestWorks) {
  struct Hang {
    const char* what;
    StorageOp op;
    const char* at;
  };
  const TemporaryDirectory cache;
  // Long enough to be kept in a file.
  const Json system = {
      {"role", "system"},
      {"content",
       "You keep a machine room in order. Read before you answer, answer in one sentence, and "
       "never guess: when you do not know a number, read the file that has it."}};
  const Json question = greedy_chat(Json::array({system, user("What is 37 + 58?")}));
  const Json other = greedy_chat(Json::array({system, user("Name three rivers of the world.")}));
  Json want;
  {
    TestServer healthy;
    httplib::Client client = healthy.client();
    want = post(client, "/v1/chat/completions", question).body["choices"];
  }
  for (const Hang& hang : {Hang{"experts", StorageOp::kRead, "at a pass"},
                           Hang{"a write", StorageOp::kWrite, "at beginning an answer"},
                           Hang{"a state", StorageOp::kRead, "at beginning an answer"}}) {
    SCOPED_TRACE(hang.what);
    const bool streamed = hang.what == std::string("experts");
    std::atomic<bool> armed = false, hung = false;
    const auto below = make_posix_storage();
    FaultPlan plan{.op = hang.op, .fail_at = 1, .keep_failing = true};
    plan.hang = [&] {
      if (armed) hung = true;
      while (armed) std::this_thread::sleep_for(milliseconds(2));
    };
    EngineOptions engine = TestServer::engine_options();
    if (streamed) {
      engine.experts = ExpertPlacement::kStreamed;
      engine.budget_bytes = 40 << 20;
      engine.read_engine = ReadEngine::kThreads;
    } else {
      engine.cache_dir = cache.path().string();
    }
    ServerOptions options;
    options.stall_seconds = 1;
    options.scheduler.n_slots = 1;
    TestServer server(std::move(options), engine, std::make_unique<FaultyStorage>(*below, plan));
    httplib::Client client = server.client();
    armed = true;
    const std::shared_ptr<void> release(nullptr, [&](void*) { armed = false; });
    if (hang.op == StorageOp::kWrite) {
      EXPECT_EQ(post(client, "/v1/chat/completions", question).status, 200) << "what is saved later hangs";
    }
    const Answered report =
        post(client, "/v1/chat/completions", hang.op == StorageOp::kWrite ? other : question);
    EXPECT_TRUE(hung);
    ASSERT_EQ(report.status, 503) << report.body;
    const std::string message = report.body["error"]["message"];
    EXPECT_NE(message.find(hang.at), std::string::npos) << message;
    EXPECT_EQ(client.Get("/health")->status, 503);
    armed = false;
    const Answered next = post(client, "/v1/chat/completions", question);
    EXPECT_EQ(next.body["choices"], want) << next.body;
    EXPECT_EQ(client.Get("/health")->status, 200);
  }
}

TEST_F(Lifecycle, AnExceptionFailsWhatIsActiveOnly) {
  std::atomic<bool> broken = true;
  ServerOptions options;
  options.scheduler.before_step = [&] {
    if (broken.exchange(false)) throw std::runtime_error("injected");
  };
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  const Json question = greedy_chat(Json::array({user("What is 37 + 58?")}));
  const Answered failed = post(client, "/v1/chat/completions", question);
  EXPECT_EQ(failed.status, 500);
  EXPECT_NE(failed.body["error"]["message"].get<std::string>().find("injected"), std::string::npos);
  EXPECT_EQ(post(client, "/v1/chat/completions", question).body["choices"][0]["message"]["content"], "95");
}

TEST_F(Lifecycle, TwoHundredIdleConnectionsAndSlowOnesAreNoHindrance) {
  ServerOptions options;
  options.request_seconds = 1;
  TestServer server(std::move(options));
  std::vector<int> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(connect_to(server.server->port()));
  for (int i = 0; i < 5; ++i) send_text(idle[i], "POST /v1/chat/completions HTTP/1.1\r\nContent-Le");
  httplib::Client client = server.client();
  EXPECT_EQ(client.Get("/health")->status, 200);
  EXPECT_EQ(post(client, "/v1/chat/completions", greedy_chat(Json::array({user("What is 37 + 58?")}))).status,
            200);
  // A request that does not come to its end is given up.
  char byte;
  timeval patience{4, 0};
  ::setsockopt(idle[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ssize_t n;
  while ((n = ::recv(idle[0], &byte, 1, 0)) > 0) {
  }
  EXPECT_EQ(n, 0) << "closed by the server";
  for (int fd : idle) ::close(fd);
}

TEST_F(Lifecycle, KeysAndOrigins) {
  ServerOptions options;
  options.api_key = "secret";
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  const auto status = [&](const httplib::Headers& headers, const char* path = "/v1/models") {
    return client.Get(path, headers)->status;
  };
  EXPECT_EQ(status({}), 401);
  EXPECT_EQ(status({{"Authorization", "Bearer secre"}}), 401);
  EXPECT_EQ(status({{"Authorization", "Bearer secret"}}), 200);
  EXPECT_EQ(status({{"x-api-key", "secret"}}), 200);
  EXPECT_EQ(status({}, "/health"), 200);
  EXPECT_EQ(status({{"x-api-key", "secret"}, {"Origin", "https://evil.example"}}), 403);
  EXPECT_EQ(status({{"x-api-key", "secret"}, {"Host", "evil.example"}}), 403);
  const auto allowed = client.Get("/v1/models", {{"x-api-key", "secret"}});
  EXPECT_FALSE(allowed->has_header("Access-Control-Allow-Origin"));
  EXPECT_FALSE(validate(ServerOptions{.host = "0.0.0.0"}).has_value());
  EXPECT_TRUE(validate(ServerOptions{.host = "0.0.0.0", .api_key = "x"}).has_value());
  EXPECT_TRUE(validate(ServerOptions{.host = "0.0.0.0", .api_key = {}, .allow_no_key = true}).has_value());
}

TEST_F(Lifecycle, StoppingLetsAnswersEndInTheirTime) {
  ServerOptions options;
  options.scheduler.before_step = [] { std::this_thread::sleep_for(milliseconds(5)); };
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  Answered answered;
  std::thread asking([&] {
    answered = post(client, "/v1/chat/completions", greedy_chat(Json::array({user("What is 37 + 58?")})));
  });
  ASSERT_TRUE(soon([&] { return server.server->status().stats.n_submitted == 1; }));
  server.server->stop(std::chrono::seconds(30));
  asking.join();
  EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(answered.body["choices"][0]["message"]["content"], "95");
}

}  // namespace
}  // namespace forebay
