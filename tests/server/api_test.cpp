// Both APIs with the embedded model: answers, streams, tools, reasoning, what is reused.
#include "server/anthropic.h"
#include "server/openai_chat.h"
#include "test_server.h"

namespace forebay {
namespace {

class Api : public WithServer {
 protected:
  httplib::Client client_ = server_ == nullptr ? httplib::Client("127.0.0.1", 1) : server_->client();
};

std::string all_text(const Json& message) {
  return message.value("reasoning_content", "") + "|" +
         (message["content"].is_string() ? message["content"].get<std::string>() : "");
}

TEST_F(Api, ChatAnswersTheSameWithAndWithoutAStream) {
  Json body = greedy_chat(Json::array({user("What is 37 + 58?")}));
  const Answered whole = post(client_, "/v1/chat/completions", body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Json& choice = whole.body["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "95") << whole.body;
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_FALSE(choice["message"]["reasoning_content"].get<std::string>().empty());
  body["stream_options"] = {{"include_usage", true}};
  const Joined stream = join_chat(post_stream(client_, "/v1/chat/completions", body));
  EXPECT_EQ(stream.content, text_of(choice["message"]["content"]));
  EXPECT_EQ(stream.reasoning, text_of(choice["message"]["reasoning_content"]));
  EXPECT_EQ(stream.finish_reason, "stop");
  EXPECT_EQ(stream.usage["completion_tokens"], whole.body["usage"]["completion_tokens"]);
  EXPECT_GT(stream.usage["completion_tokens_details"]["reasoning_tokens"], 0);
}

TEST_F(Api, SeedsChoicesStopsAndLogProbs) {
  Json body = {{"messages", Json::array({user("Define river.")})},
               {"temperature", 1.2},
               {"seed", 7},
               {"n", 3},
               {"max_tokens", 12},
               {"logprobs", true},
               {"top_logprobs", 2}};
  const Answered first = post(client_, "/v1/chat/completions", body);
  const Answered again = post(client_, "/v1/chat/completions", body);
  ASSERT_EQ(first.status, 200) << first.body;
  ASSERT_EQ(first.body["choices"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(all_text(first.body["choices"][i]["message"]), all_text(again.body["choices"][i]["message"]));
    const Json& tokens = first.body["choices"][i]["logprobs"]["content"];
    ASSERT_EQ(tokens.size(), 12u);
    for (const Json& token : tokens) {
      EXPECT_LE(token["logprob"].get<double>(), 0);
      EXPECT_EQ(token["top_logprobs"].size(), 2u);
    }
  }
  EXPECT_NE(all_text(first.body["choices"][0]["message"]), all_text(first.body["choices"][1]["message"]));
  EXPECT_EQ(first.body["usage"]["completion_tokens"], 36);

  // Stop strings are looked for in the content only: the reasoning has digits too.
  Json stopped = greedy_chat(Json::array({user("What is 37 + 58?")}));
  stopped["stop"] = Json::array({"5", "never"});
  const Answered cut = post(client_, "/v1/chat/completions", stopped);
  EXPECT_EQ(cut.body["choices"][0]["message"]["content"], "9") << cut.body;
  EXPECT_EQ(cut.body["choices"][0]["finish_reason"], "stop");

  Json banned = greedy_chat(Json::array({user("Say 9")}));
  banned["max_tokens"] = 3;
  banned["logit_bias"] = {{"300", 100}};
  const Answered pushed = post(client_, "/v1/chat/completions", banned);
  const Json piece = post(client_, "/detokenize", {{"tokens", {300, 300, 300}}}).body["content"];
  EXPECT_EQ(pushed.body["choices"][0]["message"].value("reasoning_content", ""), text_of(piece))
      << pushed.body;
}

TEST_F(Api, CompletionsContinueTextAndIds) {
  const Json ids = post(client_, "/tokenize", {{"content", "The quick brown"}}).body["tokens"];
  Json body = {{"prompt", "The quick brown"}, {"temperature", 0}, {"max_tokens", 6}, {"logprobs", 1}};
  const Answered text = post(client_, "/v1/completions", body);
  ASSERT_EQ(text.status, 200) << text.body;
  body["prompt"] = ids;
  EXPECT_EQ(post(client_, "/v1/completions", body).body["choices"][0]["text"],
            text.body["choices"][0]["text"]);
  EXPECT_EQ(text.body["choices"][0]["logprobs"]["tokens"].size(), 6u);
  body["prompt"] = Json::array({"The quick brown", "One two"});
  body["echo"] = true;
  const Answered two = post(client_, "/v1/completions", body);
  ASSERT_EQ(two.body["choices"].size(), 2u);
  EXPECT_EQ(text_of(two.body["choices"][0]["text"]),
            "The quick brown" + text_of(text.body["choices"][0]["text"]));
  EXPECT_EQ(two.body["usage"]["completion_tokens"], 12);
}

// Cases 27 and 58: the call comes back spelt differently, and nothing is read again.
TEST_F(Api, AToolRoundTripReadsOnlyWhatIsNew) {
  Json body = greedy_chat(Json::array({user("What is the weather in Paris?")}));
  body["tools"] = Json::array({weather_tool()});
  const Answered whole = post(client_, "/v1/chat/completions", body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Json& message = whole.body["choices"][0]["message"];
  ASSERT_TRUE(message.contains("tool_calls")) << whole.body;
  EXPECT_EQ(whole.body["choices"][0]["finish_reason"], "tool_calls");
  const Json call = message["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "get_weather");
  EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>())["city"], "Paris");

  const Joined stream = join_chat(post_stream(client_, "/v1/chat/completions", body));
  ASSERT_EQ(stream.calls.size(), 1u);
  EXPECT_EQ(stream.calls[0]["name"], "get_weather");
  EXPECT_EQ(stream.calls[0]["arguments"], call["function"]["arguments"]);
  EXPECT_EQ(stream.finish_reason, "tool_calls");

  // As a client with its own JSON writer and without an interest in reasoning sends it back.
  Json sent = {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}};
  sent["tool_calls"][0]["function"]["arguments"] = "{  \"city\" :\n\"Paris\"}";
  body["messages"].push_back(sent);
  body["messages"].push_back({{"role", "tool"},
                              {"tool_call_id", call["id"]},
                              {"content", R"({"temperature": 21, "sky": "clear"})"}});
  const Answered next = post(client_, "/v1/chat/completions", body);
  ASSERT_EQ(next.status, 200) << next.body;
  const int64_t before = whole.body["usage"]["total_tokens"];
  // All but the stop token, which is in no state.
  EXPECT_GE(next.body["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>(), before - 1)
      << next.body;
}

TEST_F(Api, ToolsThroughAnthropicsMessages) {
  const Json tool = {{"name", "get_weather"},
                     {"description", "The weather of a city"},
                     {"input_schema", weather_tool()["function"]["parameters"]}};
  Json body = {{"max_tokens", 200},
               {"temperature", 0},
               {"thinking", {{"type", "enabled"}, {"budget_tokens", 100}}},
               {"tools", Json::array({tool})},
               {"messages", Json::array({user("What is the weather in Paris?")})}};
  const Answered whole = post(client_, "/v1/messages", body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(whole.body["stop_reason"], "tool_use");
  const Json content = whole.body["content"];
  ASSERT_EQ(content.size(), 2u) << content;
  EXPECT_EQ(content[0]["type"], "thinking");
  EXPECT_EQ(content[1]["type"], "tool_use");
  EXPECT_EQ(content[1]["input"]["city"], "Paris");

  // The stream says the same, in the order that clients rely on.
  std::string kinds, input;
  for (const Event& event : post_stream(client_, "/v1/messages", body)) {
    EXPECT_EQ(event.name, text_of(event.data["type"]));
    if (event.name != "content_block_delta" && event.name != "ping") kinds += event.name + " ";
    if (event.name == "content_block_delta" && event.data["delta"]["type"] == "input_json_delta")
      input += event.data["delta"]["partial_json"];
  }
  EXPECT_EQ(kinds,
            "message_start content_block_start content_block_stop content_block_start content_block_stop "
            "message_delta message_stop ");
  EXPECT_EQ(Json::parse(input), content[1]["input"]);

  body["messages"].push_back({{"role", "assistant"}, {"content", content}});
  body["messages"].push_back({{"role", "user"},
                              {"content", Json::array({{{"type", "tool_result"},
                                                        {"tool_use_id", content[1]["id"]},
                                                        {"content", "21 degrees, clear"}}})}});
  const Answered next = post(client_, "/v1/messages", body);
  ASSERT_EQ(next.status, 200) << next.body;
  const Json& usage = whole.body["usage"];
  const int64_t before = usage["input_tokens"].get<int64_t>() +
                         usage["cache_read_input_tokens"].get<int64_t>() +
                         usage["output_tokens"].get<int64_t>();
  EXPECT_GE(next.body["usage"]["cache_read_input_tokens"].get<int64_t>(), before - 1) << next.body;
}

TEST_F(Api, AToolsResultIsAnsweredThroughBoth) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"a", {{"type", "integer"}}}, {"b", {{"type", "integer"}}}}},
                       {"required", Json::array({"a", "b"})}};
  const char *about = "Multiply two integers", *result = R"({"product": 144722})";
  const Json question = user("Use the tool to multiply 269 by 538"), want = {{"a", 269}, {"b", 538}};

  Json body = greedy_chat(Json::array({question}));
  body["reasoning_effort"] = "none";
  body["tools"] =
      Json::array({{{"type", "function"},
                    {"function", {{"name", "multiply"}, {"description", about}, {"parameters", schema}}}}});
  const Json called = post(client_, "/v1/chat/completions", body).body["choices"][0]["message"];
  ASSERT_TRUE(called.contains("tool_calls")) << called;
  const Json& call = called["tool_calls"][0];
  EXPECT_EQ(Json::parse(call["function"]["arguments"].get<std::string>()), want);
  body["messages"].push_back(called);
  body["messages"].push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", result}});
  const Answered answered = post(client_, "/v1/chat/completions", body);
  EXPECT_NE(all_text(answered.body["choices"][0]["message"]).find("144722"), std::string::npos)
      << answered.body;

  Json messages = {{"max_tokens", 120}, {"temperature", 0}, {"messages", Json::array({question})}};
  messages["tools"] = Json::array({{{"name", "multiply"}, {"description", about}, {"input_schema", schema}}});
  const Json content = post(client_, "/v1/messages", messages).body["content"];
  ASSERT_EQ(content.back()["type"], "tool_use") << content;
  EXPECT_EQ(content.back()["input"], want);
  messages["messages"].push_back({{"role", "assistant"}, {"content", content}});
  messages["messages"].push_back({{"role", "user"},
                                  {"content", Json::array({{{"type", "tool_result"},
                                                            {"tool_use_id", content.back()["id"]},
                                                            {"content", result}}})}});
  const Answered replied = post(client_, "/v1/messages", messages);
  EXPECT_NE(replied.body["content"].back().value("text", "").find("144722"), std::string::npos)
      << replied.body;
}

TEST_F(Api, ToolChoiceIsObeyed) {
  Json body = greedy_chat(Json::array({user("What is 2 + 2?")}));
  body["max_tokens"] = 200;
  body["tools"] = Json::array({weather_tool()});
  body["tool_choice"] = "required";
  const Answered forced = post(client_, "/v1/chat/completions", body);
  ASSERT_EQ(forced.status, 200) << forced.body;
  EXPECT_EQ(forced.body["choices"][0]["finish_reason"], "tool_calls") << forced.body;
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "get_weather"}}}};
  const Answered named = post(client_, "/v1/chat/completions", body);
  EXPECT_EQ(named.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "get_weather")
      << named.body;
  body["messages"] = Json::array({user("What is the weather in Paris?")});
  body["tool_choice"] = "none";
  const Answered none = post(client_, "/v1/chat/completions", body);
  EXPECT_FALSE(none.body["choices"][0]["message"].contains("tool_calls")) << none.body;
}

TEST_F(Api, ResponseFormatsHold) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"sum", {{"type", "integer"}}}, {"even", {{"type", "boolean"}}}}},
                       {"required", Json::array({"sum", "even"})},
                       {"additionalProperties", false}};
  for (const char* effort : {"none", "low"}) {
    Json body = {
        {"messages", Json::array({user("What is 37 + 58? Answer in JSON.")})},
        {"temperature", 1.5},
        {"seed", 3},
        {"max_tokens", 200},
        {"reasoning_effort", effort},
        {"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}};
    for (int seed = 0; seed < 5; ++seed) {
      body["seed"] = seed;
      const Answered whole = post(client_, "/v1/chat/completions", body);
      ASSERT_EQ(whole.status, 200) << whole.body;
      const Json json =
          Json::parse(whole.body["choices"][0]["message"]["content"].get<std::string>(), nullptr, false);
      ASSERT_TRUE(json.is_object()) << whole.body;
      EXPECT_TRUE(json["sum"].is_number_integer() && json["even"].is_boolean() && json.size() == 2) << json;
    }
    body["response_format"] = {{"type", "json_object"}};
    const Answered object = post(client_, "/v1/chat/completions", body);
    EXPECT_TRUE(Json::parse(object.body["choices"][0]["message"]["content"].get<std::string>()).is_object());
  }
}

TEST_F(Api, ResponsesGoOnFromEarlierOnes) {
  Json body = {{"input", "What is 37 + 58?"}, {"temperature", 0}, {"max_output_tokens", 100}};
  const Answered first = post(client_, "/v1/responses", body);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.body["status"], "completed");
  EXPECT_EQ(first.body["output"].back()["content"][0]["text"], "95") << first.body;
  const Answered next = post(client_, "/v1/responses",
                             {{"input", "And 12 + 30?"},
                              {"previous_response_id", first.body["id"]},
                              {"temperature", 0},
                              {"max_output_tokens", 100}});
  ASSERT_EQ(next.status, 200) << next.body;
  EXPECT_GE(next.body["usage"]["input_tokens_details"]["cached_tokens"].get<int64_t>(),
            first.body["usage"]["total_tokens"].get<int64_t>() - 1)
      << next.body;
  // Stateless: the same conversation as items.
  Json items = Json::array({user("What is 37 + 58?")});
  for (const Json& item : first.body["output"]) items.push_back(item);
  items.push_back(user("And 12 + 30?"));
  const Answered stateless =
      post(client_, "/v1/responses", {{"input", items}, {"temperature", 0}, {"max_output_tokens", 100}});
  EXPECT_EQ(stateless.body["output"].back()["content"][0]["text"],
            next.body["output"].back()["content"][0]["text"]);
  EXPECT_EQ(stateless.body["usage"]["input_tokens"], next.body["usage"]["input_tokens"]);

  std::string text;
  int64_t sequence = 0;
  for (const Event& event : post_stream(client_, "/v1/responses", body)) {
    EXPECT_EQ(event.data["sequence_number"], sequence++);
    if (event.name == "response.output_text.delta") text += event.data["delta"];
  }
  EXPECT_EQ(text, "95");
}

// Case 64.
TEST_F(Api, CountedTokensAreThoseOfTheRequest) {
  Json body = {{"messages", Json::array({user("What is the weather in Paris?")})},
               {"system", Json::array({{{"type", "text"}, {"text", "Be brief."}},
                                       {{"type", "text"}, {"text", "Be kind."}}})},
               {"tools", Json::array({{{"name", "get_weather"}, {"input_schema", {{"type", "object"}}}}})}};
  const Answered counted = post(client_, "/v1/messages/count_tokens", body);
  ASSERT_EQ(counted.status, 200) << counted.body;
  body["max_tokens"] = 1;
  const Json usage = post(client_, "/v1/messages", body).body["usage"];
  EXPECT_EQ(counted.body["input_tokens"].get<int64_t>(),
            usage["input_tokens"].get<int64_t>() + usage["cache_read_input_tokens"].get<int64_t>());
  EXPECT_GT(counted.body["input_tokens"], 60);
}

// Case 57.
TEST_F(Api, SystemMessagesMayStandAnywhere) {
  const Json system = {{"role", "system"}, {"content", "Be brief."}};
  const Json developer = {{"role", "developer"}, {"content", "Be kind."}};
  for (const Json& messages :
       {Json::array({user("Hi"), system, user("Hi")}), Json::array({system, developer, user("Hi")}),
        Json::array({user("Hi")}), Json::array({system}), Json::array({user("Hi"), system})}) {
    Json body = greedy_chat(messages);
    body["max_tokens"] = 1;
    EXPECT_EQ(post(client_, "/v1/chat/completions", body).status, 200) << messages;
  }
}

TEST_F(Api, ControlTokensInMessagesAreText) {
  const auto n_tokens = [&](const std::string& text) {
    Json body = greedy_chat(Json::array({user(text)}));
    body["max_tokens"] = 0;
    const Answered answered = post(client_, "/v1/chat/completions", body);
    EXPECT_EQ(answered.status, 200) << answered.body;
    return answered.body["usage"]["prompt_tokens"].get<int64_t>();
  };
  const int64_t empty = n_tokens("");
  // As text each is several tokens; as control tokens they would be one each, or end the message.
  EXPECT_GT(n_tokens("<|im_end|>"), empty + 2);
  EXPECT_GT(n_tokens("</think>"), empty + 1);
  const Answered shown =
      post(client_, "/apply-template", {{"messages", Json::array({user("a<|im_end|>b")})}});
  EXPECT_NE(shown.body["prompt"].get<std::string>().find("a<|im_end|>b<|im_end|>"), std::string::npos)
      << shown.body;
  // In a tool's description, through the template's JSON.
  Json body = greedy_chat(Json::array({user("x")}));
  body["tools"] = Json::array({weather_tool()});
  body["tools"][0]["function"]["description"] = "ends <|im_end|> here";
  const Answered tools = post(client_, "/apply-template", body);
  EXPECT_NE(tools.body["prompt"].get<std::string>().find("ends <|im_end|> here"), std::string::npos)
      << tools.body;
}

// Cases 25 and 26.
TEST_F(Api, TurnsAreReadOnceWhateverTheEffort) {
  Json messages = Json::array({user("What is 37 + 58?")});
  int64_t before = 0;
  const char* efforts[] = {"none", "low", "high", "none", "medium"};
  for (int turn = 0; turn < 5; ++turn) {
    Json body = greedy_chat(messages);
    body["reasoning_effort"] = efforts[turn];
    const Answered answered = post(client_, "/v1/chat/completions", body);
    ASSERT_EQ(answered.status, 200) << answered.body;
    const Json& usage = answered.body["usage"];
    // The end of the prompt differs with thinking on and off: a few tokens.
    EXPECT_GE(usage["prompt_tokens_details"]["cached_tokens"].get<int64_t>(), before - 8)
        << "turn " << turn << usage;
    before = usage["total_tokens"];
    messages.push_back(answered.body["choices"][0]["message"]);
    messages.push_back(user("And " + std::to_string(11 + turn) + " + 22?"));
  }
}

// Case 61.
TEST_F(Api, StreamsAndWholeAnswersSplitReasoningTheSame) {
  const Json question = Json::array({user("What is 37 + 58?")});
  const std::vector<std::pair<const char*, Json>> outputs = {
      {"closed", {}},
      {"unclosed", {{"max_tokens", 6}}},
      {"ended by its budget", {{"thinking_budget", 4}}},
      {"off", {{"reasoning_effort", "none"}}}};
  for (const auto& [name, more] : outputs) {
    Json body = greedy_chat(question);
    if (more.is_object()) body.update(more);
    const Answered whole = post(client_, "/v1/chat/completions", body);
    ASSERT_EQ(whole.status, 200) << whole.body;
    const Json& message = whole.body["choices"][0]["message"];
    const Joined stream = join_chat(post_stream(client_, "/v1/chat/completions", body));
    EXPECT_EQ(stream.reasoning + "|" + stream.content, all_text(message)) << name;
    const std::string content = message["content"].is_string() ? message["content"].get<std::string>() : "";
    EXPECT_EQ(content.find("think"), std::string::npos) << name << ": " << content;
    EXPECT_EQ(content.find("enough thought"), std::string::npos) << name << ": " << content;
    EXPECT_EQ(content.empty(), std::string(name) == "unclosed") << name << ": " << all_text(message);
    EXPECT_EQ(message.contains("reasoning_content"), std::string(name) != "off") << name;
  }
}

// Case 63: what is cut anywhere is whole characters, and nothing is lost.
TEST_F(Api, CharactersAreNeverCut) {
  for (int seed = 0; seed < 4; ++seed) {
    Json body = {{"prompt", "日本語の説明 🙂🙂 é: これは"},
                 {"temperature", 1.5},
                 {"seed", seed},
                 {"max_tokens", 40}};
    const Answered whole = post(client_, "/v1/completions", body);
    ASSERT_EQ(whole.status, 200);
    std::string text;
    for (const Event& event : post_stream(client_, "/v1/completions", body)) {
      if (!event.data.is_object()) continue;
      const std::string piece = event.data["choices"][0]["text"];
      EXPECT_NO_THROW((void)Json(piece).dump()) << "not UTF-8";  // strict
      text += piece;
    }
    EXPECT_EQ(text, text_of(whole.body["choices"][0]["text"]));
  }
}

// Case 63, with the text given: its characters take several tokens each, and an answer ends before one.
TEST_F(Api, CharactersOfSeveralTokensComeWholeAroundStops) {
  const std::string text = "a🙂🙂é日本語z";
  EXPECT_GT(post(client_, "/tokenize", {{"content", "🙂"}}).body["tokens"].size(), 1u);
  Json body = greedy_chat(Json::array({user("x")}));
  body["reasoning_effort"] = "none";
  body["response_format"] = {{"type", "json_schema"},
                             {"json_schema", {{"name", "x"}, {"schema", {{"const", text}}}}}};
  for (const std::string stop : {"", "🙂🙂", "é", "本", "z"}) {
    if (!stop.empty()) body["stop"] = stop;
    const std::string all = "\"" + text + "\"", want = stop.empty() ? all : all.substr(0, all.find(stop));
    const Answered whole = post(client_, "/v1/chat/completions", body);
    ASSERT_EQ(whole.status, 200) << whole.body;
    const std::string content = text_of(whole.body["choices"][0]["message"]["content"]);
    EXPECT_EQ(content.substr(content.find('"')), want);
    std::string streamed;
    for (const Event& event : post_stream(client_, "/v1/chat/completions", body)) {
      if (!event.data.is_object()) continue;
      const Json& delta = event.data["choices"][0]["delta"];
      if (!delta.contains("content")) continue;
      EXPECT_NO_THROW((void)delta.dump()) << "not UTF-8";  // strict
      streamed += delta["content"].get<std::string>();
    }
    EXPECT_EQ(streamed, content);
  }
}

// Case 59, the other way round: arguments that the model spoilt go out as it wrote them, never as {}.
TEST_F(Api, SpoiltArgumentsAreShown) {
  Choice choice;
  choice.ended = true;
  choice.end.report.reason = FinishReason::kStopToken;
  ParsedCall spoilt;
  spoilt.id = "call_1";
  spoilt.name = "f";
  spoilt.arguments = "{\"a\": NaN";
  spoilt.state = CallState::kMalformed;
  choice.answer.calls.push_back(spoilt);
  const std::vector<Choice> choices = {choice};
  const auto openai = make_chat_reply("m", {}, *server_->engine->tokenizer());
  const Json call = openai->whole(choices, {})["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["arguments"], "{\"a\": NaN") << call;
  const Json block = make_anthropic_reply("m")->whole(choices, {})["content"].back();
  EXPECT_EQ(block["input"]["malformed_arguments"], "{\"a\": NaN") << block;
}

// Case 10.
TEST(Repetition, EndsAnAnswerAndSaysSo) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  ServerOptions options;
  options.max_repeats = 20;
  TestServer server(std::move(options));
  httplib::Client client = server.client();
  Json body = greedy_chat(Json::array({user("x")}));
  body["logit_bias"] = {{"300", 100}};
  const Answered stopped = post(client, "/v1/chat/completions", body);
  EXPECT_EQ(stopped.body["usage"]["completion_tokens"], 20) << stopped.body;
  EXPECT_EQ(stopped.body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(stopped.body["choices"][0]["finish_detail"], "repetition");
  // 0: never.
  TestServer patient(ServerOptions{.max_repeats = 0});
  httplib::Client other = patient.client();
  body["max_tokens"] = 700;
  const Answered whole = post(other, "/v1/chat/completions", body);
  EXPECT_EQ(whole.body["usage"]["completion_tokens"], 700) << whole.body;
  EXPECT_FALSE(whole.body["choices"][0].contains("finish_detail"));
}

}  // namespace
}  // namespace forebay
