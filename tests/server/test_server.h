/// A server with the embedded model, in this process, and a client for it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "forebay/engine.h"

#include "core/memory_budget.h"
#include "core/storage.h"
#include "server/server.h"

namespace forebay {

using Json = nlohmann::ordered_json;

inline const std::string kPebble = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

struct TestServer {
  explicit TestServer(ServerOptions options = {}, int64_t context = 1024, int64_t chunk = 128)
      : TestServer(std::move(options), engine_options(context, chunk)) {}
  static EngineOptions engine_options(int64_t context = 1024, int64_t chunk = 128) {
    EngineOptions o;
    o.model = kPebble;
    o.threads = 2;
    o.context = context;
    o.chunk = chunk;
    o.int8_activations = true;
    return o;
  }
  TestServer(ServerOptions options, const EngineOptions& engine_options,
             std::unique_ptr<Storage> storage = make_posix_storage()) {
    Result<Engine> opened =
        Engine::open(engine_options, std::move(storage), std::make_unique<MemoryBudget>());
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    engine.emplace(std::move(opened).value());
    options.port = 0;
    Result<std::unique_ptr<Server>> started = Server::start(*engine, std::move(options));
    EXPECT_TRUE(started.has_value()) << started.error().message;
    server = std::move(started).value();
  }

  httplib::Client client() const {
    httplib::Client c("127.0.0.1", server->port());
    c.set_read_timeout(60);
    c.set_keep_alive(true);
    c.set_tcp_nodelay(true);
    return c;
  }
  std::optional<Engine> engine;
  std::unique_ptr<Server> server;
};

/// The text of a JSON string. (Strings and JSON are not compared with each other: which == is meant is not
/// clear to newer versions of the library.)
inline const std::string& text_of(const Json& json) {
  static const std::string kNone = "(no string)";
  return json.is_string() ? json.get_ref<const std::string&>() : kNone;
}

struct Answered {
  int status = 0;
  Json body;
};

inline Answered post_text(httplib::Client& client, const std::string& path, const std::string& body) {
  const auto result = client.Post(path, body, "application/json");
  EXPECT_TRUE(result) << path << ": " << httplib::to_string(result.error());
  if (!result) return {};
  return {result->status, Json::parse(result->body, nullptr, false)};
}
inline Answered post(httplib::Client& client, const std::string& path, const Json& body) {
  return post_text(client, path, body.dump());
}
inline Json status_of(httplib::Client& client) {
  const auto result = client.Get("/v1/status");
  EXPECT_TRUE(result);
  return result ? Json::parse(result->body) : Json();
}

struct Event {
  std::string name;
  Json data;  // a string "[DONE]" at the end of OpenAI's
};
inline std::vector<Event> events_of(const std::string& text) {
  std::vector<Event> events;
  std::string name;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("event: ")) name = line.substr(7);
    if (!line.starts_with("data: ")) continue;
    const std::string data = line.substr(6);
    events.push_back({std::exchange(name, {}), data == "[DONE]" ? Json(data) : Json::parse(data)});
  }
  return events;
}
inline std::vector<Event> post_stream(httplib::Client& client, const std::string& path, Json body) {
  body["stream"] = true;
  const auto result = client.Post(path, body.dump(), "application/json");
  EXPECT_TRUE(result) << path << ": " << httplib::to_string(result.error());
  if (!result) return {};
  EXPECT_EQ(result->status, 200) << result->body;
  return events_of(result->body);
}

/// A chat completion's stream, joined.
struct Joined {
  std::string content, reasoning, finish_reason;
  Json calls = Json::array();  // id, name, arguments
  Json usage;
};
inline Joined join_chat(const std::vector<Event>& events) {
  Joined all;
  for (const Event& event : events) {
    if (!event.data.is_object()) continue;
    if (event.data.contains("usage") && !event.data["usage"].is_null()) all.usage = event.data["usage"];
    if (!event.data.contains("choices") || event.data["choices"].empty()) continue;
    const Json& choice = event.data["choices"][0];
    const Json& delta = choice["delta"];
    if (delta.contains("content") && delta["content"].is_string()) all.content += delta["content"];
    if (delta.contains("reasoning_content")) all.reasoning += delta["reasoning_content"];
    if (!choice["finish_reason"].is_null()) all.finish_reason = choice["finish_reason"];
    if (!delta.contains("tool_calls")) continue;
    for (const Json& call : delta["tool_calls"]) {
      const size_t index = call["index"];
      if (call.contains("id"))
        all.calls.push_back({{"id", call["id"]}, {"name", call["function"]["name"]}, {"arguments", ""}});
      all.calls[index]["arguments"] =
          all.calls[index]["arguments"].get<std::string>() + call["function"]["arguments"].get<std::string>();
    }
  }
  return all;
}

inline Json user(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}
inline Json greedy_chat(Json messages) {
  return {{"messages", std::move(messages)}, {"temperature", 0}, {"max_tokens", 120}};
}

inline Json weather_tool() {
  return {{"type", "function"},
          {"function",
           {{"name", "get_weather"},
            {"description", "The weather of a city"},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"city", {{"type", "string"}}}}},
              {"required", Json::array({"city"})}}}}}};
}

inline int64_t cached_tokens(const Answered& answered) {
  return answered.body["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
}

/// Waits until `holds`, at most five seconds.
template <typename Condition>
bool soon(Condition holds) {
  for (int i = 0; i < 500; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// One server for all tests of a suite.
class WithServer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::filesystem::exists(kPebble)) server_ = std::make_unique<TestServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "models/pebble.gguf is not there";
  }
  static inline std::unique_ptr<TestServer> server_;
};

}  // namespace forebay
