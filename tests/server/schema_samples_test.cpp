// Structured answers over HTTP at a temperature at which the embedded model would write nothing of sense by
// itself. FOREBAY_SAMPLES=1000 for the long run, of which docs/constrained.md has the result.
#include <cstdlib>

#include "constrain/validator.h"
#include "test_server.h"

namespace forebay {
namespace {

const char* const kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 16},
    "age": {"type": "integer", "minimum": 0, "maximum": 130},
    "kind": {"enum": ["cat", "dog", "b\u00e4r", null]},
    "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 2}
  },
  "required": ["name", "age", "kind", "code"],
  "additionalProperties": false
})";

TEST(SchemaSamples, EveryAnswerIsValid) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  const char* wanted = std::getenv("FOREBAY_SAMPLES");
  const int n = wanted == nullptr ? 100 : std::atoi(wanted);
  ServerOptions options;
  options.scheduler.n_slots = 10;
  TestServer server(std::move(options), 512);
  httplib::Client client = server.client();
  const Json schema = Json::parse(kSchema);
  int n_valid = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < n; i += 10) {
    const bool any = i % 30 == 20;
    Json body = {{"messages", Json::array({user("Describe Anna's cat as JSON.")})},
                 {"temperature", 1.5},
                 {"seed", i},
                 {"n", std::min(10, n - i)},
                 {"max_tokens", 60},
                 {"reasoning_effort", i % 20 == 0 ? "none" : "minimal"},
                 {"response_format", {{"type", "json_object"}}}};
    if (!any)
      body["response_format"] = {{"type", "json_schema"},
                                 {"json_schema", {{"name", "x"}, {"schema", schema}}}};
    const Answered answered = post(client, "/v1/chat/completions", body);
    ASSERT_EQ(answered.status, 200) << answered.body;
    for (const Json& choice : answered.body["choices"]) {
      const std::string text = text_of(choice["message"]["content"]);
      const Json value = Json::parse(text, nullptr, false);
      const std::string wrong = value.is_discarded() ? "no JSON"
                                : !any               ? find_violation(schema, value)
                                : value.is_object()  ? ""
                                                     : "no object";
      EXPECT_EQ(wrong, "") << text;
      n_valid += wrong.empty();
    }
  }
  EXPECT_EQ(n_valid, n);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf("%d of %d valid over HTTP, %.1f s\n", n_valid, n, seconds.count());
}

}  // namespace
}  // namespace forebay
