// Requests that are wrong: each is answered with 400 and the field's name, soon.
#include <chrono>

#include "test_server.h"

namespace forebay {
namespace {

struct Bad {
  const char* path;
  std::string body;
  std::string param;  // the message begins with it
};

std::string chat(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":1,)" + more + "}";
}
std::string message(const std::string& m) {
  return R"({"messages":[)" + m + R"(],"max_tokens":1})";
}
std::string anthropic(const std::string& more) {
  return R"({"max_tokens":1,"messages":[{"role":"user","content":"hi"}],)" + more + "}";
}
std::string blocks(const std::string& role, const std::string& block) {
  return R"({"max_tokens":1,"messages":[{"role":")" + role + R"(","content":[)" + block + "]}]}";
}

std::vector<Bad> bad_requests() {
  const char *c = "/v1/chat/completions", *m = "/v1/messages", *r = "/v1/responses", *p = "/v1/completions";
  std::vector<Bad> all = {
      // The body as such.
      {c, "", "body"},
      {c, "{", "body"},
      {c, "[]", "body"},
      {c, "3", "body"},
      {c, "null", "body"},
      {c, R"("text")", "body"},
      {c, chat(R"("temperature":NaN)"), "body"},
      {c, chat(R"("temperature":+1)"), "body"},
      {c, chat(R"("temperature":01)"), "body"},
      {c, chat(R"("temperature":1e999)"), "body"},
      {c, chat(R"("temperature":1,)"), "body"},
      {c, chat("\"user\":\"a\nb\""), "body"},
      {c, chat("\"user\":\"\xff\xfe\""), "body"},
      {c, chat(R"("user":'a')"), "body"},
      {c, chat(R"("user":"\ud800")"), "body"},
      {c, std::string(5000, '[') + std::string(5000, ']'), "body"},
      {c, std::string(200000, '['), "body"},
      {c, "{/* comment */}", "body"},
      {c, message(R"({"role":"user","content":"a"})") + "x", "body"},
      // Messages.
      {c, "{}", "messages"},
      {c, R"({"messages":null})", "messages"},
      {c, R"({"messages":{}})", "messages"},
      {c, R"({"messages":[]})", "messages"},
      {c, R"({"messages":"hi"})", "messages"},
      {c, message("null"), "messages[0]"},
      {c, message(R"("hi")"), "messages[0]"},
      {c, message("{}"), "messages[0].role"},
      {c, message(R"({"role":"king","content":"x"})"), "messages[0].role"},
      {c, message(R"({"role":7,"content":"x"})"), "messages[0].role"},
      {c, message(R"({"role":"user"})"), "messages[0].content"},
      {c, message(R"({"role":"user","content":7})"), "messages[0].content"},
      {c, message(R"({"role":"user","content":{"type":"text"}})"), "messages[0].content"},
      {c, message(R"({"role":"user","content":["x"]})"), "messages[0].content[0]"},
      {c, message(R"({"role":"user","content":[{"text":"x"}]})"), "messages[0].content[0].type"},
      {c, message(R"({"role":"user","content":[{"type":"text"}]})"), "messages[0].content[0].text"},
      {c, message(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})"),
       "messages[0].content[0].type"},
      {c, message(R"({"role":"assistant","tool_calls":{}})"), "messages[0].tool_calls"},
      {c, message(R"({"role":"assistant","tool_calls":["x"]})"), "messages[0].tool_calls[0]"},
      {c, message(R"({"role":"assistant","tool_calls":[{"id":"a"}]})"), "messages[0].tool_calls[0].function"},
      {c, message(R"({"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]})"),
       "messages[0].tool_calls[0].function.name"},
      {c,
       message(R"({"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]})"),
       "messages[0].tool_calls[0].function.arguments"},
      {c,
       message(R"({"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"[1]"}}]})"),
       "messages[0].tool_calls[0].function.arguments"},
      {c,
       message(R"({"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":[1]}}]})"),
       "messages[0].tool_calls[0].function.arguments"},
      // Parameters.
      {c, chat(R"("temperature":"hot")"), "temperature"},
      {c, chat(R"("temperature":-1)"), "temperature"},
      {c, chat(R"("top_p":1.5)"), "top_p"},
      {c, chat(R"("top_k":-1)"), "top_k"},
      {c, chat(R"("presence_penalty":3)"), "presence_penalty"},
      {c, chat(R"("frequency_penalty":[])"), "frequency_penalty"},
      {c, chat(R"("seed":1.5)"), "seed"},
      {c, chat(R"("seed":18446744073709551616)"), "seed"},
      {c, chat(R"("n":0)"), "n"},
      {c, chat(R"("n":1000)"), "n"},
      {c, chat(R"("max_tokens":-1)"), "max_tokens"},
      {c, chat(R"("max_completion_tokens":"many")"), "max_completion_tokens"},
      {c, chat(R"("stop":7)"), "stop"},
      {c, chat(R"("stop":[""])"), "stop"},
      {c, chat(R"("stop":["a",null])"), "stop"},
      {c, chat(R"("logit_bias":[])"), "logit_bias"},
      {c, chat(R"("logit_bias":{"word":1})"), "logit_bias"},
      {c, chat(R"("logit_bias":{"99999999":1})"), "logit_bias"},
      {c, chat(R"("logit_bias":{"5":1000})"), "logit_bias.5"},
      {c, chat(R"("logprobs":3)"), "logprobs"},
      {c, chat(R"("top_logprobs":3)"), "top_logprobs"},
      {c, chat(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs"},
      {c, chat(R"("stream":"yes")"), "stream"},
      {c, chat(R"("stream_options":{"include_usage":true})"), "stream_options"},
      {c, chat(R"("stream":true,"stream_options":{"include_usage":1})"), "stream_options.include_usage"},
      {c, chat(R"("reasoning_effort":"extreme")"), "reasoning_effort"},
      {c, chat(R"("reasoning_effort":3)"), "reasoning_effort"},
      {c, chat(R"("thinking_budget":-5)"), "thinking_budget"},
      {c, chat(R"("chat_template_kwargs":{"enable_thinking":"no"})"), "chat_template_kwargs.enable_thinking"},
      {c, chat(R"("response_format":"json")"), "response_format"},
      {c, chat(R"("response_format":{"type":"yaml"})"), "response_format.type"},
      {c, chat(R"("response_format":{"type":"json_schema"})"), "response_format.schema"},
      {c, chat(R"("modalities":["audio"])"), "modalities"},
      {c, chat(R"("functions":[])"), "functions"},
      // Tools.
      {c, chat(R"("tools":{})"), "tools"},
      {c, chat(R"("tools":["f"])"), "tools[0]"},
      {c, chat(R"("tools":[{"type":"web_search"}])"), "tools[0].type"},
      {c, chat(R"("tools":[{"type":"function"}])"), "tools[0].function"},
      {c, chat(R"("tools":[{"type":"function","function":{}}])"), "tools[0].function.name"},
      {c, chat(R"("tools":[{"type":"function","function":{"name":"f","parameters":"x"}}])"),
       "tools[0].function.parameters"},
      {c, chat(R"("tool_choice":"required")"), "tool_choice"},
      {c, chat(R"("tool_choice":"maybe")"), "tool_choice"},
      {c,
       chat(R"("tools":[{"type":"function","function":{"name":"f"}}],)"
            R"("tool_choice":{"type":"function","function":{"name":"g"}})"),
       "tool_choice"},
      // Other paths.
      {p, "{}", "prompt"},
      {p, R"({"prompt":7})", "prompt"},
      {p, R"({"prompt":[]})", "prompt"},
      {p, R"({"prompt":[1,"a"]})", "prompt"},
      {p, R"({"prompt":[99999999]})", "prompt"},
      {p, R"({"prompt":["a",[]]})", "prompt"},
      {p, R"({"prompt":"a","suffix":"b"})", "suffix"},
      {p, R"({"prompt":"a","logprobs":true})", "logprobs"},
      {p, R"({"prompt":"a","best_of":3})", "best_of"},
      {r, "{}", "input"},
      {r, R"({"input":[]})", "input"},
      {r, R"({"input":[7]})", "input[0]"},
      {r, R"({"input":[{"type":"file"}]})", "input[0].type"},
      {r, R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "input[0].content[0].type"},
      {r, R"({"input":[{"type":"function_call","name":"f"}]})", "input[0].call_id"},
      {r, R"({"input":"a","background":true})", "background"},
      {r, R"({"input":"a","tools":[{"type":"web_search"}]})", "tools[0].type"},
      {r, R"({"input":"a","reasoning":{"effort":"huge"}})", "reasoning.effort"},
      {m, R"({"messages":[{"role":"user","content":"hi"}]})", "max_tokens"},
      {m, R"({"max_tokens":0,"messages":[{"role":"user","content":"hi"}]})", "max_tokens"},
      {m, R"({"max_tokens":1})", "messages"},
      {m, R"({"max_tokens":1,"messages":[]})", "messages"},
      {m, R"({"max_tokens":1,"messages":[{"role":"tool","content":"x"}]})", "messages[0].role"},
      {m, R"({"max_tokens":1,"messages":[{"role":"user"}]})", "messages[0].content"},
      {m, blocks("user", R"("x")"), "messages[0].content[0]"},
      {m, blocks("user", R"({"type":"image"})"), "messages[0].content[0].type"},
      {m, blocks("user", R"({"type":"tool_result"})"), "messages[0].content[0].tool_use_id"},
      {m, blocks("assistant", R"({"type":"tool_use","id":"a","name":"f","input":"x"})"),
       "messages[0].content[0].input"},
      {m, blocks("assistant", R"({"type":"tool_result","tool_use_id":"a"})"), "messages[0].content[0].type"},
      {m, anthropic(R"("system":7)"), "system"},
      {m, anthropic(R"("stop_sequences":"")"), "stop_sequences"},
      {m, anthropic(R"("thinking":{"type":"on"})"), "thinking.type"},
      {m, anthropic(R"("thinking":{"type":"enabled"})"), "thinking.budget_tokens"},
      {m, anthropic(R"("tools":[{"name":"f"}])"), "tools[0].input_schema"},
      {m, anthropic(R"("tools":[{"type":"bash_20250124","name":"bash"}])"), "tools[0].type"},
      {m, anthropic(R"("tool_choice":{"type":"any"})"), "tool_choice"},
      {m, anthropic(R"("metadata":"me")"), "metadata"},
      {"/v1/messages/count_tokens", "{}", "messages"},
      {"/tokenize", "{}", "content"},
      {"/tokenize", R"({"content":"x","parse_special":"no"})", "parse_special"},
      {"/detokenize", R"({"tokens":["a"]})", "tokens"},
      {"/detokenize", R"({"tokens":[-1]})", "tokens"},
      {"/apply-template", R"({"messages":7})", "messages"},
  };
  return all;
}

class BadInput : public WithServer {};

TEST_F(BadInput, IsRefusedWithTheNameOfTheField) {
  httplib::Client client = server_->client();
  const std::vector<Bad> all = bad_requests();
  EXPECT_GE(all.size(), 60u);
  for (const Bad& bad : all) {
    const auto began = std::chrono::steady_clock::now();
    const auto result = client.Post(bad.path, bad.body, "application/json");
    ASSERT_TRUE(result) << bad.path << " " << bad.body.substr(0, 200);
    EXPECT_EQ(result->status, 400) << bad.path << " " << bad.body.substr(0, 200) << "\n" << result->body;
    const Json json = Json::parse(result->body, nullptr, false);
    ASSERT_TRUE(json.is_object() && json.contains("error")) << result->body;
    const std::string text = json["error"]["message"];
    EXPECT_TRUE(text.starts_with(bad.param + ":")) << bad.body.substr(0, 200) << "\n" << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    if (!std::string(bad.path).starts_with("/v1/messages")) {
      EXPECT_EQ(text_of(json["error"]["param"]), bad.param) << text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5)) << bad.body.substr(0, 200);
  }
  EXPECT_EQ(server_->server->status().stats.n_failed, 0);
}

TEST_F(BadInput, PromptsThatDoNotFitNameTheContext) {
  httplib::Client client = server_->client();
  std::string long_text;
  for (int i = 0; i < 3000; ++i) long_text += "word ";
  const Answered refused = post(client, "/v1/chat/completions", greedy_chat(Json::array({user(long_text)})));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body["error"]["code"], "context_length_exceeded");
  EXPECT_NE(refused.body["error"]["message"].get<std::string>().find("the context holds 1024"),
            std::string::npos);
}

TEST_F(BadInput, OtherMistakesHaveTheirStatus) {
  httplib::Client client = server_->client();
  EXPECT_EQ(client.Get("/v1/nothing")->status, 404);
  EXPECT_EQ(client.Get("/../../etc/passwd")->status, 404);
  EXPECT_EQ(client.Get("/v1/models/other")->status, 404);
  EXPECT_EQ(post(client, "/v1/embeddings", {{"input", "x"}}).status, 501);
  EXPECT_EQ(post(client, "/v1/responses", {{"input", "x"}, {"previous_response_id", "resp_none"}}).status,
            404);
  EXPECT_EQ(client.Post("/v1/chat/completions", std::string(33 << 20, ' '), "application/json")->status, 413);
}

}  // namespace
}  // namespace forebay
