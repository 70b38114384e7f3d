// Bodies of requests, through every protocol's parser: no crash, and every refusal is one line that begins
// with a field's name.
#include <string_view>

#include "fuzz.h"
#include "server/anthropic.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"

namespace {

using namespace forebay;

ModelInfo model() {
  ModelInfo info;
  info.n_vocab = 1000;
  info.context = 1024;
  return info;
}

template <typename T>
void check(const Result<T>& parsed) {
  if (parsed) return;
  const std::string& message = parsed.error().message;
  FUZZ_ASSERT(parsed.error().code == Code::kInvalidArgument || parsed.error().code == Code::kNotFound);
  FUZZ_ASSERT(message.find('\n') == std::string::npos);
  FUZZ_ASSERT(message.find(": ") != std::string::npos && message.find(": ") > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ModelInfo info = model();
  static ResponseStore store;
  const Result<Json> body = parse_object({reinterpret_cast<const char*>(data), size});
  check(body);
  if (!body) return 0;
  const Result<ChatRequest> chat = parse_chat_request(*body, info);
  check(chat);
  if (chat) (void)dump(chat->messages);
  check(parse_completion_request(*body, info));
  check(parse_anthropic_request(*body, info));
  check(parse_anthropic_request(*body, info, /*counting=*/true));
  check(parse_responses_request(*body, info, store));
  return 0;
}

FuzzSeeds fuzz_seeds() {
  FuzzSeeds seeds;
  seeds.inputs = {
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},)"
      R"({"role":"assistant","content":"<think>a</think>b","tool_calls":[{"id":"c","type":"function","function":)"
      R"({"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],)"
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto",)"
      R"("temperature":0.5,"top_p":1,"n":2,"stop":["x"],"logprobs":true,"top_logprobs":3,"seed":-4,)"
      R"("logit_bias":{"5":-1.5},"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"low",)"
      R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}})",
      R"({"max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"tool_use",)"
      R"("id":"c","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",)"
      R"("content":[{"type":"text","text":"r"}],"is_error":true},{"type":"text","text":"x"}]}],)"
      R"("tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"},)"
      R"("thinking":{"type":"enabled","budget_tokens":9},"stop_sequences":["x"],"metadata":{"user_id":"u"}})",
      R"({"input":[{"role":"user","content":"hi"},{"type":"reasoning","content":[{"type":"reasoning_text",)"
      R"("text":"t"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
      R"({"type":"function_call_output","call_id":"c","output":"r"}],"instructions":"i","store":false,)"
      R"("reasoning":{"effort":"high"},"text":{"format":{"type":"json_object"}},"max_output_tokens":5})",
      R"({"prompt":["a",[1,2]],"echo":true,"logprobs":2,"best_of":1,"max_tokens":3})"};
  seeds.tokens = {"null",
                  "[]",
                  "{}",
                  "\"\"",
                  "-1",
                  "1e308",
                  "9223372036854775808",
                  "true",
                  "\"role\":",
                  "\"type\":",
                  "\"content\":",
                  "\"messages\":",
                  "\"tools\":",
                  "\"input\":",
                  "\"\\ud800\"",
                  "\xff",
                  "[[[[",
                  ","};
  return seeds;
}
