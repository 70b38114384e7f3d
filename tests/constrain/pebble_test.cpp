// The embedded model under constraints, at a temperature at which it would write nothing of sense by itself.
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "chat/output_parser.h"
#include "constrain/constrain.h"
#include "sampling/sampling.h"
#include "validator.h"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

const std::string kModel = std::string(FOREBAY_SOURCE_DIR) + "/models/pebble.gguf";

const std::string kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 24},
    "age": {"type": "integer", "minimum": 0, "maximum": 130},
    "score": {"type": "number", "minimum": -1, "maximum": 1},
    "kind": {"enum": ["cat", "dog", "b\u00e4r", null]},
    "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    "owner": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
    "free": {}
  },
  "required": ["name", "age", "kind", "code", "tags", "owner"],
  "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}, "friend": {"$ref": "#/$defs/person"}},
                       "required": ["name"], "additionalProperties": {"type": "boolean"}}}
})";

struct Written {
  std::string text;
  int64_t n_tokens = 0;
  double seconds = 0;
  double mask_seconds = 0;  // mask() and accept()
  bool complete = false;
};

class Pebble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(kModel)) return;
    EngineOptions options;
    options.model = kModel;
    options.threads = 2;
    options.int8_activations = true;
    engine_ = new Engine(Engine::open(options).value());
    vocabulary_ = new ConstraintVocabulary(*engine_->tokenizer());
  }
  static void TearDownTestSuite() {
    delete vocabulary_;
    delete engine_;
  }
  void SetUp() override {
    if (!engine_) GTEST_SKIP() << "models/pebble.gguf is not there";
  }

  Written write(Session& session, const std::vector<int32_t>& prompt, TokenConstraint& constraint,
                uint64_t seed, float temperature, int64_t n_tokens) {
    SamplingOptions sampling;
    sampling.temperature = temperature;
    sampling.seed = seed;
    Written written;
    SamplingScratch scratch;
    session.sync(prompt).value();
    const auto start = Clock::now();
    for (; written.n_tokens < n_tokens; ++written.n_tokens) {
      std::vector<float> logits(session.logits().begin(), session.logits().end());
      const auto before = Clock::now();
      constraint.set_tokens_left(n_tokens - written.n_tokens);
      constraint.mask(logits);
      written.mask_seconds += std::chrono::duration<double>(Clock::now() - before).count();
      const Result<int32_t> id = sample(logits, session.tokens(), sampling, written.n_tokens, scratch);
      EXPECT_TRUE(id) << written.text;
      if (!id || engine_->tokenizer()->is_stop(*id)) break;
      const auto between = Clock::now();
      const Result<void> accepted = constraint.accept(*id);
      written.mask_seconds += std::chrono::duration<double>(Clock::now() - between).count();
      EXPECT_TRUE(accepted) << written.text;
      written.text += engine_->tokenizer()->token_bytes(*id, /*specials=*/true);
      session.append(*id).value();
    }
    written.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    written.complete = constraint.complete();
    return written;
  }

  static std::vector<int32_t> prompt(const std::string& question, const std::string& begun) {
    return engine_
        ->tokenize("<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n<think>\n" + begun)
        .value();
  }

  /// FOREBAY_SAMPLES=1000 for the long run.
  static int n_samples(int usual) {
    const char* wanted = std::getenv("FOREBAY_SAMPLES");
    return wanted ? std::atoi(wanted) : usual;
  }

  static Engine* engine_;
  static ConstraintVocabulary* vocabulary_;
};
Engine* Pebble::engine_ = nullptr;
ConstraintVocabulary* Pebble::vocabulary_ = nullptr;

TEST_F(Pebble, EverySampleIsValid) {
  Session session = engine_->new_session().value();
  const std::vector<int32_t> ids = prompt("Describe Anna's cat as JSON.", "\n</think>\n\n");
  const Json schema = Json::parse(kSchema);
  double seconds = 0, mask_seconds = 0;
  int64_t n_tokens = 0;
  int n_valid = 0;
  const int n = n_samples(50);
  const bool is_long = n > 50;
  for (int i = 0; i < n; ++i) {
    // Under any object, or under the schema with little or much room.
    const bool any = i % (is_long ? 3 : 5) > (is_long ? 1 : 0);
    auto constraint =
        any ? compile_json_object(*vocabulary_).value() : compile_json_schema(kSchema, *vocabulary_).value();
    const Written w = write(session, ids, *constraint, i, 1.5f, any && !is_long ? 20 : i % 3 == 1 ? 130 : 80);
    seconds += w.seconds;
    mask_seconds += w.mask_seconds;
    n_tokens += w.n_tokens;
    const Json value = Json::parse(w.text, nullptr, false);
    EXPECT_TRUE(w.complete) << w.text;
    EXPECT_FALSE(value.is_discarded()) << w.text;
    if (value.is_discarded()) continue;
    const std::string wrong = any ? (value.is_object() ? "" : "no object") : find_violation(schema, value);
    EXPECT_EQ(wrong, "") << w.text;
    n_valid += wrong.empty();
  }
  EXPECT_EQ(n_valid, n);
  fmt::print(
      "{} of {} valid; {} tokens, {:.1f} tok/s, {:.2f} % of the time for masks ({:.1f} us per token)\n",
      n_valid, n, n_tokens, static_cast<double>(n_tokens) / seconds, 100 * mask_seconds / seconds,
      1e6 * mask_seconds / static_cast<double>(n_tokens));
}

TEST_F(Pebble, ToolCallsAreOnes) {
  const auto tools = ToolSchemas::parse(Json::parse(R"([
    {"name": "get_weather", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7},
      "unit": {"type": "string", "enum": ["C", "F"]}, "when": {"type": "string", "pattern": "^\\d{2}:\\d{2}$"}},
      "required": ["city", "unit"]}},
    {"name": "now"}])"))
                         .value();
  Session session = engine_->new_session().value();
  const std::vector<int32_t> ids = prompt("What is the weather in Paris?", "\n</think>\n\n");
  for (int i = 0; i < n_samples(8); ++i) {
    const ToolStyle style = i % 2 ? ToolStyle::kXml : ToolStyle::kJson;
    const bool parallel = i % 3 == 0;
    auto constraint = compile_tool_calls(style, tools, {}, parallel, *vocabulary_).value();
    const Written w = write(session, ids, *constraint, i, 1.5f, 120);
    EXPECT_TRUE(w.complete) << w.text;
    OutputParser parser({.tools = style}, tools, false);
    parser.feed(w.text);
    parser.finish();
    const ParsedAnswer& answer = parser.answer();
    EXPECT_EQ(answer.content, "") << w.text;
    ASSERT_FALSE(answer.calls.empty()) << w.text;
    EXPECT_TRUE(parallel || answer.calls.size() == 1) << w.text;
    for (const ParsedCall& call : answer.calls) {
      EXPECT_EQ(call.state, CallState::kComplete) << w.text;
      ASSERT_TRUE(tools.has(call.name)) << w.text;
      EXPECT_EQ(find_violation(tools.parameters(call.name), Json::parse(call.arguments)), "") << w.text;
    }
  }
}

TEST_F(Pebble, NamedToolIsCalled) {
  const auto tools = ToolSchemas::parse(Json::parse(R"([{"name": "one"}, {"name": "two"}])")).value();
  auto constraint = compile_tool_calls(ToolStyle::kXml, tools, {"two"}, false, *vocabulary_).value();
  Session session = engine_->new_session().value();
  const Written w = write(session, prompt("Call one.", "\n</think>\n\n"), *constraint, 1, 0, 60);
  EXPECT_EQ(w.text.substr(w.text.find('<')), "<tool_call>\n<function=two>\n</function>\n</tool_call>");
  EXPECT_EQ(compile_tool_calls(ToolStyle::kXml, tools, {"three"}, false, *vocabulary_).error().message,
            "tool calls: no tool is named 'three'");
}

TEST_F(Pebble, ThinksFirst) {
  Session session = engine_->new_session().value();
  const std::vector<int32_t> ids = prompt("What is 37 + 58? Answer as JSON.", "");
  for (int i = 0; i < 4; ++i) {
    auto constraint =
        after_reasoning(compile_json_schema(R"({"type": "object", "properties": {"sum": {"type": "integer"}},
                                                              "required": ["sum"]})",
                                            *vocabulary_)
                            .value(),
                        /*starts_in_reasoning=*/true, *vocabulary_);
    // With 30 tokens the thinking has to be cut short.
    const Written w = write(session, ids, *constraint, i, i < 2 ? 0 : 1.5f, i % 2 ? 30 : 200);
    const size_t close = w.text.find("</think>");
    ASSERT_NE(close, std::string::npos) << w.text;
    EXPECT_TRUE(Json::parse(w.text.substr(close + 8), nullptr, false).is_object()) << w.text;
    EXPECT_TRUE(w.complete) << w.text;
  }
}

TEST_F(Pebble, RefusesOtherTokens) {
  auto constraint = compile_json_schema(R"({"type": "boolean"})", *vocabulary_).value();
  const Tokenizer& tokenizer = *engine_->tokenizer();
  EXPECT_EQ(constraint->accept(tokenizer.encode("x")[0]).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(constraint->accept(-1));
  EXPECT_FALSE(constraint->accept(tokenizer.stop_ids()[0]));
  EXPECT_FALSE(constraint->complete());
  EXPECT_EQ(constraint->min_tokens_left(), 4);
  for (const int32_t id : tokenizer.encode("true")) ASSERT_TRUE(constraint->accept(id));
  EXPECT_TRUE(constraint->complete());
  // Nothing but an end, and padding behind the vocabulary is excluded as well.
  std::vector<float> logits(tokenizer.n_tokens() + 10, 0.f);
  constraint->mask(logits);
  for (size_t id = 0; id < logits.size(); ++id)
    EXPECT_EQ(std::isfinite(logits[id]), tokenizer.is_stop(static_cast<int32_t>(id))) << id;
  EXPECT_TRUE(constraint->accept(tokenizer.stop_ids()[0]));
}

}  // namespace
}  // namespace forebay
