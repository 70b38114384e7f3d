// The small parts of the command line that handle text: ids, JSON, conversations, biases, places of files.
#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "cli/conversation.h"
#include "cli/ids.h"
#include "cli/json_writer.h"
#include "cli/model_location.h"
#include "cli/sampling_flags.h"
#include "cli/terminal.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

TEST(Ids, ReadEveryNotation) {
  const std::vector<int32_t> want = {1, 2, 30};
  for (const char* text : {"1,2,30", "1 2 30", " 1,\n2 ,30\n", "[1, 2, 30]", "[1 2 30]",
                           "{\"ids\": [1, 2, 30]}", "{ \"ids\" : [ 1,2,30 ] }\n"}) {
    const Result<std::vector<int32_t>> ids = parse_ids(text);
    ASSERT_OK(ids) << text;
    EXPECT_EQ(*ids, want) << text;
  }
  EXPECT_TRUE(parse_ids("[]")->empty());
  EXPECT_TRUE(parse_ids("")->empty());
}

TEST(Ids, ErrorsNameTheItem) {
  EXPECT_TRUE(fails_with(parse_ids("1,x,3"), Code::kInvalidArgument, "token id 2", "'x'"));
  EXPECT_TRUE(fails_with(parse_ids("1,,3"), Code::kInvalidArgument, "token id 2"));
  EXPECT_TRUE(fails_with(parse_ids("-1"), Code::kInvalidArgument, "'-1'"));
  EXPECT_TRUE(fails_with(parse_ids("2147483648"), Code::kInvalidArgument, "2147483648"));
  EXPECT_TRUE(fails_with(parse_ids("1.5"), Code::kInvalidArgument, "1.5"));
  EXPECT_TRUE(fails_with(parse_ids("1,2,"), Code::kInvalidArgument, "comma"));
  EXPECT_TRUE(fails_with(parse_ids("{\"tokens\": [1]}"), Code::kInvalidArgument, "ids"));
  EXPECT_TRUE(fails_with(parse_ids("[1, [2]]"), Code::kInvalidArgument, "'[2]'"));
}

TEST(Ids, AreAListOrAFile) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const std::string file = (directory / "ids.json").string();
  std::ofstream(file) << "{\"ids\": [4, 5]}";
  EXPECT_EQ(*read_ids(*storage, file), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(*read_ids(*storage, "4, 5"), (std::vector<int32_t>{4, 5}));
  EXPECT_TRUE(fails_with(read_ids(*storage, file + ".not"), Code::kNotFound, "ids.json.not"));
  std::ofstream(file) << "4, five";
  EXPECT_TRUE(fails_with(read_ids(*storage, file), Code::kInvalidArgument, "ids.json", "'five'"));
}

TEST(JsonWriter, PlacesCommasAndEscapes) {
  JsonWriter json;
  json.begin_object().key("a\"b").string("x\n\xff").key("n").integer(-3).key("list").begin_array();
  json.integer(1)
      .number(0.5)
      .boolean(true)
      .null()
      .begin_object()
      .end_object()
      .begin_array()
      .end_array()
      .end_array();
  json.key("nan")
      .number(std::numeric_limits<double>::quiet_NaN())
      .key("big")
      .integer(UINT64_MAX)
      .end_object();
  EXPECT_EQ(json.text(),
            "{\"a\\\"b\": \"x\\u000a\xef\xbf\xbd\", \"n\": -3, \"list\": [1, 0.5, true, null, {}, []], "
            "\"nan\": null, \"big\": 18446744073709551615}");
}

TEST(Conversation, GoesThroughAFile) {
  Conversation conversation;
  conversation.set_system("Be brief.");
  conversation.add_user("37 + 58? \xe6\x9d\xb1");
  conversation.add_assistant("95", "thinking");
  conversation.set_thinking(false);
  const Result<Conversation> again = Conversation::parse(conversation.file_json());
  ASSERT_OK(again);
  EXPECT_EQ(again->file_json(), conversation.file_json());
  EXPECT_EQ(again->system(), "Be brief.");
  EXPECT_EQ(again->n_messages(), 2u);
  EXPECT_EQ(again->thinking(), false);
  EXPECT_NE(again->prompt_json().find("\"add_generation_prompt\":true"), std::string::npos);
  EXPECT_EQ(again->file_json().find("add_generation_prompt"), std::string::npos);
}

TEST(Conversation, SystemMessageIsReplacedAndRemoved) {
  Conversation conversation;
  conversation.add_user("hello");
  conversation.set_system("one");
  conversation.set_system("two");
  EXPECT_EQ(conversation.system(), "two");
  EXPECT_EQ(conversation.n_messages(), 1u);
  conversation.clear();
  EXPECT_EQ(conversation.system(), "two");
  EXPECT_EQ(conversation.n_messages(), 0u);
  conversation.set_system("");
  EXPECT_EQ(conversation.file_json(), "{\n  \"messages\": []\n}\n");
}

TEST(Conversation, KeepsWhatItDoesNotKnow) {
  const Result<Conversation> loaded =
      Conversation::parse(R"({"tools": [{"name": "f"}], "messages": [{"role": "user", "content": ["x"]}]})");
  ASSERT_OK(loaded);
  EXPECT_NE(loaded->prompt_json().find(R"("tools":[{"name":"f"}])"), std::string::npos);
  EXPECT_NE(loaded->prompt_json().find(R"("content":["x"])"), std::string::npos);
}

TEST(Conversation, RefusesOtherFiles) {
  EXPECT_TRUE(fails_with(Conversation::parse("{"), Code::kCorrupt, "not JSON"));
  EXPECT_TRUE(fails_with(Conversation::parse("[]"), Code::kCorrupt, "object"));
  EXPECT_TRUE(fails_with(Conversation::parse("{}"), Code::kCorrupt, "messages"));
  EXPECT_TRUE(fails_with(Conversation::parse(R"({"messages": [{"content": "x"}]})"), Code::kCorrupt,
                         "message 0", "role"));
  EXPECT_TRUE(fails_with(Conversation::parse(R"({"messages": [], "enable_thinking": 1})"), Code::kCorrupt,
                         "enable_thinking"));
}

TEST(LogitBias, ReadsIdAndBias) {
  EXPECT_EQ(*parse_logit_bias("12=-1.5"), std::pair(12, -1.5f));
  EXPECT_EQ(*parse_logit_bias("0=-inf"), std::pair(0, -INFINITY));
  for (const char* text : {"12", "=1", "x=1", "1=", "1=x", "1=inf", "-1=2", "1=nan"})
    EXPECT_FALSE(parse_logit_bias(text).has_value()) << text;
}

TEST(Terminal, TextCannotSteerIt) {
  EXPECT_EQ(without_controls("a\x1b[2Jb\x07\nc\td\x7f"), "a[2Jb\nc\td");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "31m\xc3\xa9\xe2\x80\xa6"),
            "31m\xc3\xa9\xe2\x80\xa6");
  EXPECT_EQ(without_controls("\xc2"), "\xc2");
}

TEST(EmbeddedModel, IsFoundFromABuildTreeAndAnInstall) {
  const TemporaryDirectory root;
  const auto put = [](const Path& file) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "x";
  };
  put(root / "source/models/pebble.gguf");
  put(root / "prefix/share/forebay/pebble.gguf");
  std::filesystem::create_directories(root / "source/build/release");
  std::filesystem::create_directories(root / "prefix/bin");
  EXPECT_EQ(*embedded_model_near(root / "source/build/release"), root / "source/models/pebble.gguf");
  EXPECT_EQ(*embedded_model_near(root / "prefix/bin"), root / "prefix/share/forebay/pebble.gguf");
  EXPECT_TRUE(fails_with(embedded_model_near(root / "elsewhere/a/b"), Code::kNotFound, "no model",
                         "elsewhere/models/pebble.gguf", "-m"));
}

}  // namespace
}  // namespace forebay::cli
