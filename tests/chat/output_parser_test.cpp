// The policy of docs/tools.md, case by case; every case is cut at every byte.
#include "chat/output_parser.h"

#include <numeric>

#include <gtest/gtest.h>

#include "transcript.h"

namespace forebay {
namespace {

constexpr ToolStyle kXml = ToolStyle::kXml;
constexpr ToolStyle kJson = ToolStyle::kJson;

struct Case {
  const char* name;
  ToolStyle style;
  bool reasoning;  // the prompt left <think> open
  std::string answer;
  std::string expected;
};

std::string call(const std::string& body) {
  return "<tool_call>\n" + body + "\n</tool_call>";
}
const std::string kParis = call("<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>");
const std::string kParisJson = call(R"({"name": "weather", "arguments": {"city": "Paris"}})");
const std::string kParisRead = R"(0:weather({"city": "Paris"}))";

std::string parameter(const std::string& key, const std::string& value) {
  return call("<function=weather>\n<parameter=" + key + ">\n" + value + "\n</parameter>\n</function>");
}

const std::vector<Case> kCases = {
    // Reasoning and content.
    {"plain", kXml, false, "Hello.\n", "C[Hello.\n]"},
    {"closed thinking", kXml, true, "so\n</think>\n\nHi", "R[so]C[Hi]"},
    {"own thinking", kXml, false, "<think>\nso\n</think>\n\nHi", "R[so]C[Hi]"},
    {"thinking behind white space", kXml, false, "\n <think>so</think>Hi", "R[so]C[Hi]"},
    {"unclosed thinking", kXml, true, "so and so\n", "R[so and so\n]"},
    {"empty thinking", kXml, true, "\n</think>\n\nHi", "C[Hi]"},
    {"think tag in prose", kXml, false, "The tag <think> opens.", "C[The tag <think> opens.]"},
    {"close tag in content", kXml, false, "Close with </think>.", "C[Close with </think>.]"},
    {"second thinking", kXml, true, "a</think>b<think>c</think>", "R[a]C[b<think>c</think>]"},
    {"half a tag", kXml, true, "a</thin", "R[a</thin]"},
    {"angle brackets", kXml, false, "a < b <<tool>> c", "C[a < b <<tool>> c]"},

    // XML calls.
    {"xml", kXml, false, kParis, kParisRead},
    {"xml after content", kXml, false, "I look.\n\n" + kParis, "C[I look.]" + kParisRead},
    {"xml after thinking", kXml, true, "hm\n</think>\n\n" + kParis, "R[hm]" + kParisRead},
    {"white space after a call", kXml, false, kParis + "\n\n", kParisRead},
    {"content after a call", kXml, false, kParis + "\nDone.", kParisRead + "C[\nDone.]"},
    {"parallel", kXml, false, kParis + "\n" + call("<function=now>\n</function>"), kParisRead + "1:now({})"},
    {"two functions in one tag", kXml, false,
     call("<function=now>\n</function>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</"
          "function>"),
     R"(0:now({})1:weather({"city": "Oslo"}))"},
    {"on one line", kXml, false,
     "<tool_call><function=weather><parameter=city>Rome</parameter></function></tool_call>",
     R"(0:weather({"city": "Rome"}))"},
    {"several lines", kXml, false, parameter("city", "a\n\n  b\n"), R"(0:weather({"city": "a\n\n  b\n"}))"},
    {"empty value", kXml, false, parameter("city", ""), R"(0:weather({"city": ""}))"},
    {"quotes and controls", kXml, false, parameter("city", "\"\\\t\x01"),
     R"(0:weather({"city": "\"\\\t\u0001"}))"},
    {"closing tag in a value", kXml, false, parameter("city", "a</parameter>b\n</parameter>\nc"),
     R"(0:weather({"city": "a</parameter>b\n</parameter>\nc"}))"},
    {"a call in a value", kXml, false,
     parameter("city", "x\n<tool_call>\n<function=now>\n</function>\n</tool_call>\ny"),
     R"(0:weather({"city": "x\n<tool_call>\n<function=now>\n</function>\n</tool_call>\ny"}))"},
    {"think tags in a value", kXml, false, parameter("city", "<think></think>"),
     R"(0:weather({"city": "<think></think>"}))"},
    {"unicode", kXml, false, parameter("city", "東京 🗼"), R"(0:weather({"city": "東京 🗼"}))"},

    // Types.
    {"integer", kXml, false, parameter("days", "3"), R"(0:weather({"days": 3}))"},
    {"integer that is none", kXml, false, parameter("days", "+1"), R"(0:weather({"days": "+1"}))"},
    {"not a number", kXml, false, parameter("days", "NaN"), R"(0:weather({"days": "NaN"}))"},
    {"boolean", kXml, false, parameter("metric", "true"), R"(0:weather({"metric": true}))"},
    {"boolean of another language", kXml, false, parameter("metric", "False"),
     R"(0:weather({"metric": false}))"},
    {"array", kXml, false, parameter("tags", "[1,\n \"a\"]"), "0:weather({\"tags\": [1,\n \"a\"]})"},
    {"array of another language", kXml, false, parameter("tags", "['a']"), R"(0:weather({"tags": "['a']"}))"},
    {"string that looks like a number", kXml, false, parameter("city", "12"), R"(0:weather({"city": "12"}))"},
    {"nullable", kXml, false, parameter("note", "null"), R"(0:weather({"note": null}))"},
    {"nullable string", kXml, false, parameter("note", "nullify"), R"(0:weather({"note": "nullify"}))"},
    {"unknown parameter", kXml, false, parameter("else", "{\"a\": 1}"), R"(0:weather({"else": {"a": 1}}))"},
    {"unknown parameter, text", kXml, false, parameter("else", "a b"), R"(0:weather({"else": "a b"}))"},

    // XML that is not as it should be.
    {"no closing tool_call", kXml, false, "<tool_call>\n<function=now>\n</function>", "0:now({})"},
    {"no closing function", kXml, false, "<tool_call>\n<function=now>\n</tool_call>", "0:now({})"},
    {"no tool_call", kXml, false, "Now:\n<function=now>\n</function>\n</tool_call>", "C[Now:]0:now({})"},
    {"no tool_call, unknown", kXml, false, "<function=f>\n</function>", "C[<function=f>\n</function>]"},
    {"no closing parameter", kXml, false, call("<function=weather>\n<parameter=city>\nRome\n</function>"),
     R"(0:weather({"city": "Rome"}))"},
    {"words between parameters", kXml, false,
     call("<function=weather>\nfirst\n<parameter=days>\n1\n</parameter>\n</function>"),
     R"(0:weather({"days": 1}))"},
    {"words after a parameter", kXml, false,
     call("<function=weather>\n<parameter=city>\na\n</parameter> b\n</parameter>\n</function>"),
     R"(0:weather({"city": "a\n</parameter> b"}))"},
    {"a parameter twice", kXml, false,
     call("<function=weather>\n<parameter=days>\n1\n</parameter>\n<parameter=days>\n2\n</parameter>\n</"
          "function>"),
     R"(0:weather({"days": 1}))"},
    {"cut in a value", kXml, false, "<tool_call>\n<function=weather>\n<parameter=city>\nPar",
     R"(0:weather({"city": "Par)cut off)"},
    {"cut after a value", kXml, false,
     "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n",
     R"(0:weather({"city": "Paris)cut off)"},
    {"cut in a name", kXml, false, "Hi\n<tool_call>\n<function=wea", "C[Hi\n<tool_call>\n<function=wea]"},
    {"cut in the closing tag", kXml, false, "<tool_call>\n<function=now>\n</function>\n</tool_", "0:now({})"},
    {"no function in it", kXml, false, "<tool_call>\nnow()\n</tool_call>",
     "C[<tool_call>\nnow()\n</tool_call>]"},
    {"a tag in a tag", kXml, false, "<tool_call>\n" + kParis, "C[<tool_call>]" + kParisRead},
    {"json in the wrong style", kXml, false, kParisJson, "C[" + kParisJson + "]"},

    // Names.
    {"unknown name", kXml, false, call("<function=f>\n</function>"), "0:f({})"},
    {"unknown name in a line", kXml, false, "Use " + call("<function=f>\n</function>"),
     "C[Use " + call("<function=f>\n</function>") + "]"},
    {"known name in a line", kXml, false, "Sure: " + kParis, "C[Sure:]" + kParisRead},
    {"no name", kXml, false, call("<function=>\n</function>"), "C[" + call("<function=>\n</function>") + "]"},

    // Quotations.
    {"in inline code", kXml, false, "Write `" + kParis + "`.", "C[Write `" + kParis + "`.]"},
    {"in a fence", kXml, false, "```xml\n" + kParis + "\n```\nSo.", "C[```xml\n" + kParis + "\n```\nSo.]"},
    {"in an unclosed fence", kXml, false, "~~~\n" + kParis, "C[~~~\n" + kParis + "]"},
    {"in a block quote", kXml, false, "> " + kParis, "C[> " + kParis + "]"},
    {"after a fence", kXml, false, "```\nx\n```\n" + kParis, "C[```\nx\n```]" + kParisRead},
    {"after inline code", kXml, false, "`x`\n" + kParis, "C[`x`]" + kParisRead},
    {"after an odd backtick", kXml, false, "It`s.\n" + kParis, "C[It`s.]" + kParisRead},

    // Calls inside thinking.
    {"never closed", kXml, true, "I call.\n" + kParis, "R[I call.]" + kParisRead},
    {"never closed, parallel", kXml, true, kParis + "\n" + kParis,
     kParisRead + R"(1:weather({"city": "Paris"}))"},
    {"never closed, words after", kXml, true, "a\n" + kParis + "\nb", "R[a]" + kParisRead + "R[\nb]"},
    {"closed, nothing after", kXml, true, "a\n" + kParis + "\n</think>\n\n", "R[a]" + kParisRead},
    {"closed, content after", kXml, true, "a\n" + kParis + "\n</think>\n\nb", "R[a\n" + kParis + "]C[b]"},
    {"closed, the call after", kXml, true, "a\n" + kParis + "\n</think>\n\n" + kParis,
     "R[a\n" + kParis + "]" + kParisRead},
    {"thought about in a line", kXml, true, "I use " + kParis, "R[I use " + kParis + "]"},
    {"thought about, unknown", kXml, true, call("<function=f>\n</function>"),
     "R[" + call("<function=f>\n</function>") + "]"},
    {"thought about in a fence", kXml, true, "```\n" + kParis + "\n```", "R[```\n" + kParis + "\n```]"},
    {"cut inside thinking", kXml, true, "a\n<tool_call>\n<function=weather>\n<parameter=city>\nPar",
     R"(R[a]0:weather({"city": "Par)cut off)"},

    // JSON calls.
    {"json", kJson, false, kParisJson, kParisRead},
    {"json after content", kJson, false, "I look.\n" + kParisJson, "C[I look.]" + kParisRead},
    {"json parallel", kJson, false, kParisJson + "\n" + call(R"({"name": "now", "arguments": {}})"),
     kParisRead + "1:now({})"},
    {"json, arguments first", kJson, false, call(R"({"arguments": {"days": 2}, "name": "weather"})"),
     R"(0:weather({"days": 2}))"},
    {"json, arguments in a string", kJson, false,
     call(R"({"name": "weather", "arguments": "{\"days\": 2}"})"), R"(0:weather({"days": 2}))"},
    {"json, parameters", kJson, false, call(R"({"name": "weather", "parameters": {"days": 2}})"),
     R"(0:weather({"days": 2}))"},
    {"json, no arguments", kJson, false, call(R"({"name": "now"})"), "0:now({})"},
    {"json, nested", kJson, false,
     call(R"({"name": "weather", "arguments": {"tags": [{"a": "}]"}, "</tool_call>"]}})"),
     R"(0:weather({"tags": [{"a": "}]"}, "</tool_call>"]}))"},
    {"json, line end in a string", kJson, false,
     call("{\"name\": \"weather\", \"arguments\": {\"city\": \"a\nb\"}}"), R"(0:weather({"city": "a\nb"}))"},
    {"json, a brace too many", kJson, false, call(R"({"name": "now", "arguments": {}}})"), "0:now({})"},
    {"json, a brace too few", kJson, false, call(R"({"name": "weather", "arguments": {"days": 1})"),
     R"(0:weather({"days": 1}))"},
    {"json, brackets missing", kJson, false, call(R"({"name": "weather", "arguments": {"tags": [1)"),
     "0:weather({\"tags\": [1\n)malformed"},
    {"json, not an object", kJson, false, call(R"({"name": "weather", "arguments": [1]})"),
     "0:weather([1])malformed"},
    {"json, null", kJson, false, call(R"({"name": "now", "arguments": null})"), "0:now(null)malformed"},
    {"json, no json", kJson, false, call(R"({"name": "weather", "arguments": {days: 1}})"),
     "0:weather({days: 1})malformed"},
    {"json, not a number", kJson, false, call(R"({"name": "weather", "arguments": {"days": NaN}})"),
     "0:weather({\"days\": NaN})malformed"},
    {"json, cut off", kJson, false, R"(<tool_call>{"name": "weather", "arguments": {"city": "Par)",
     R"(0:weather({"city": "Par)cut off)"},
    {"json, cut before arguments", kJson, false, R"(<tool_call>{"name": "weather")", "0:weather()cut off"},
    {"json, unknown name", kJson, false, call(R"({"name": "f", "arguments": {}})"), "0:f({})"},
    {"json, no name", kJson, false, call(R"({"a": 1})"), "C[" + call(R"({"a": 1})") + "]"},
    {"json, escaped name", kJson, false, call(R"({"name": "no\u0077", "arguments": {}})"), "0:now({})"},
    {"json in inline code", kJson, false, "`" + kParisJson + "`", "C[`" + kParisJson + "`]"},
    {"json in unclosed thinking", kJson, true, "hm\n" + kParisJson, "R[hm]" + kParisRead},
    {"xml in the wrong style", kJson, false, kParis, "C[" + kParis + "]"},

    // No style.
    {"unread style", ToolStyle::kNone, false, kParis, "C[" + kParis + "]"},
};

TEST(OutputParser, Policy) {
  for (const Case& c : kCases) {
    const ParsedRun run = parse_answer(c.answer, c.style, c.reasoning, test_tools(), {});
    EXPECT_EQ(run.transcript, c.expected) << c.name;
  }
}

TEST(OutputParser, AnyCutGivesTheSameEvents) {
  for (const Case& c : kCases) {
    const ParsedRun whole = parse_answer(c.answer, c.style, c.reasoning, test_tools(), {});
    std::vector<size_t> everywhere(c.answer.size());
    std::iota(everywhere.begin(), everywhere.end(), 0);
    const ParsedRun bytewise = parse_answer(c.answer, c.style, c.reasoning, test_tools(), everywhere);
    EXPECT_EQ(bytewise.transcript, whole.transcript) << c.name;
    EXPECT_EQ(bytewise.bytes, whole.bytes) << c.name;
    for (size_t cut = 0; cut <= c.answer.size(); ++cut) {
      const ParsedRun run = parse_answer(c.answer, c.style, c.reasoning, test_tools(), {cut});
      ASSERT_EQ(run.transcript, whole.transcript) << c.name << ", cut at " << cut;
      ASSERT_EQ(run.bytes, whole.bytes) << c.name << ", cut at " << cut;
    }
  }
}

TEST(OutputParser, WithoutToolsCallsAreText) {
  for (const Case& c : kCases) {
    const ParsedRun run = parse_answer(c.answer, c.style, c.reasoning, {}, {});
    EXPECT_TRUE(run.answer.calls.empty()) << c.name;
  }
}

TEST(OutputParser, TextIsWhatTheModelWrote) {
  for (const Case& c : kCases) {
    const ParsedRun run = parse_answer(c.answer, c.style, c.reasoning, test_tools(), {});
    if (run.answer.call_in_reasoning) continue;
    const size_t close = c.answer.find(kThinkClose);
    const bool thought = close != std::string::npos && c.expected[0] == 'R';
    std::string rest = thought ? c.answer.substr(close + kThinkClose.size()) : c.answer;
    if (thought || c.expected.empty()) rest.erase(0, rest.find_first_not_of('\n'));
    if (c.expected.find("C[") == std::string::npos && c.expected.find(':') == std::string::npos) continue;
    if (c.reasoning && !thought) continue;
    EXPECT_EQ(run.answer.text, rest) << c.name;
    std::string calls;
    for (const ParsedCall& call : run.answer.calls) calls += call.bytes;
    // White space at the very end is in no event.
    if (c.expected.back() == ')') {
      EXPECT_EQ(run.answer.content + calls, rest.substr(0, rest.find_last_not_of('\n') + 1)) << c.name;
    }
  }
}

TEST(OutputParser, NameComesBeforeArguments) {
  OutputParser parser({.tools = kXml}, test_tools(), false);
  OutputParser::Events events = parser.feed("<tool_call>\n<function=weather>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, OutputEvent::Kind::kCallBegin);
  EXPECT_EQ(events[0].name, "weather");
  EXPECT_TRUE(events[0].id.starts_with("call_"));
  EXPECT_EQ(events[0].id.size(), 29u);
  events = parser.feed("\n<parameter=city>\nNew");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, OutputEvent::Kind::kArguments);
  EXPECT_EQ(events[0].text, "{\"city\": \"New");
  EXPECT_EQ(parser.feed(" York").at(0).text, " York");
}

TEST(OutputParser, IdsDiffer) {
  EXPECT_NE(random_call_id(), random_call_id());
}

}  // namespace
}  // namespace forebay
