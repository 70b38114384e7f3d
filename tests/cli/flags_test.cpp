#include "cli/flags.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"

namespace forebay::cli {
namespace {

struct Values {
  bool on = false;
  std::string text;
  std::optional<std::string> maybe;
  std::optional<std::string> word;
  std::vector<std::string> list, files;
  int64_t count = 7;
  std::optional<float> share;
  uint64_t size = 0;
  std::string positional;
  FlagTable flags;

  Values() {
    flags.text("INPUT", "", positional, "what to read");
    flags.section("Things");
    flags.toggle("-o,--on", on, "switch it on");
    flags.text("-t,--text", "TEXT", text, "a text");
    flags.text("--maybe", "TEXT", maybe, "perhaps a text");
    flags.choice("--word", {"yes", "no"}, word, "one of two");
    flags.texts("--item", "TEXT", list, "an item");
    flags.many("--files", "FILE...", files, "files");
    flags.integer("-n,--count", "N", count, {-1, 100}, "how many");
    flags.number("--share", "P", share, {0, 1}, "how much");
    flags.bytes("--size", "SIZE", size, "how large");
  }
  Result<FlagTable::Parsed> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "command");
    return flags.parse(arguments);
  }
};

TEST(Flags, AssignWhatIsGivenAndNothingElse) {
  Values v;
  ASSERT_OK(v.parse(
      {"-o", "-t", "a b", "--maybe", "", "--word=no", "-n5", "--share", "0.25", "--size", "1.5K", "in"}));
  EXPECT_TRUE(v.on);
  EXPECT_EQ(v.text, "a b");
  EXPECT_EQ(v.maybe, "");
  EXPECT_EQ(v.word, "no");
  EXPECT_EQ(v.count, 5);
  EXPECT_EQ(v.share, 0.25f);
  EXPECT_EQ(v.size, 1536u);
  EXPECT_EQ(v.positional, "in");

  Values none;
  ASSERT_OK(none.parse({}));
  EXPECT_FALSE(none.on);
  EXPECT_EQ(none.count, 7);
  EXPECT_FALSE(none.share || none.maybe || none.word);
}

TEST(Flags, ValuesMayLookLikeFlagsAndLists) {
  Values v;
  ASSERT_OK(v.parse({"-t", "-5 + 3", "-n", "-1", "--maybe", "[1, 2]", "--item", "--on", "--", "-x"}));
  EXPECT_EQ(v.text, "-5 + 3");
  EXPECT_EQ(v.count, -1);
  EXPECT_EQ(v.maybe, "[1, 2]");
  EXPECT_EQ(v.list, std::vector<std::string>{"--on"});
  EXPECT_EQ(v.positional, "-x");
  EXPECT_FALSE(v.on);
}

TEST(Flags, RepeatedAndManyValuesKeepTheirOrder) {
  Values v;
  ASSERT_OK(v.parse({"--item", "b", "--item", "a", "--files", "x", "y", "z", "-o"}));
  EXPECT_EQ(v.list, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(v.files, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(v.positional, "");
}

TEST(Flags, ErrorsNameTheFlag) {
  const auto fails = [](std::vector<const char*> arguments, const char* a, const char* b) {
    Values v;
    return fails_with(v.parse(std::move(arguments)), Code::kInvalidArgument, a, b);
  };
  EXPECT_TRUE(fails({"--unknown"}, "unknown flag", "--unknown"));
  EXPECT_TRUE(fails({"-z"}, "unknown flag", "-z"));
  EXPECT_TRUE(fails({"in", "more"}, "unexpected argument", "more"));
  EXPECT_TRUE(fails({"--", "in", "-more"}, "unexpected argument", "-more"));
  EXPECT_TRUE(fails({"-n"}, "count", "required"));
  EXPECT_TRUE(fails({"-n", "many"}, "--count", "many"));
  EXPECT_TRUE(fails({"-n", "101"}, "--count", "101"));
  EXPECT_TRUE(fails({"-n", "1", "--count", "2"}, "--count", "2 times"));
  EXPECT_TRUE(fails({"--share", "1.5"}, "--share", "1.5"));
  EXPECT_TRUE(fails({"--share", "nan"}, "--share", "nan"));
  EXPECT_TRUE(fails({"--word", "maybe"}, "--word", "yes, no"));
  EXPECT_TRUE(fails({"--size", "big"}, "--size", "big"));
}

TEST(Flags, HelpIsAskedForAnywhere) {
  Values v;
  EXPECT_EQ(*v.parse({"-o", "--help"}), FlagTable::Parsed::kHelp);
  EXPECT_EQ(*v.parse({"-h"}), FlagTable::Parsed::kHelp);
}

TEST(Flags, HelpShowsEveryRowWithItsDefault) {
  Values v;
  const std::string help = v.flags.help();
  for (const char* part : {"INPUT", "-o, --on", "-t, --text TEXT", "--word yes|no", "-n, --count N",
                           "how many [7]", "--files FILE...", "Things"})
    EXPECT_NE(help.find(part), std::string::npos) << part << " in\n" << help;
  for (const auto& [bytes, text] : {std::pair<uint64_t, const char*>{0, "how large [0]"},
                                    {1536, "how large [1536]"},
                                    {2048, "how large [2K]"},
                                    {uint64_t{8} << 30, "how large [8G]"}}) {
    v.size = bytes;
    const std::string shown = v.flags.help();
    EXPECT_NE(shown.find(text), std::string::npos) << text << " in\n" << shown;
  }
  for (size_t at = 0; at < help.size();) {
    const size_t end = std::min(help.find('\n', at), help.size());
    EXPECT_LE(end - at, 100u) << help.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Flags, SettingsAreWhatIsKnown) {
  Values v;
  ASSERT_OK(v.parse({"--share", "0.5", "-t", "x", "--item", "a", "--item", "b"}));
  std::string all;
  for (const Setting& setting : v.flags.settings())
    all += setting.name + (setting.is_text ? "~" : "=") + setting.value + ";";
  EXPECT_EQ(all, "on=false;text~x;item~a, b;count=7;share=0.5;size=0;");
}

TEST(Wrap, BreaksBetweenWords) {
  EXPECT_EQ(wrap("aa bb cc dd", 5, 0), "aa bb\ncc dd");
  EXPECT_EQ(wrap("aa bb cc", 7, 2), "aa bb\n  cc");
  EXPECT_EQ(wrap("unbreakable", 4, 0), "unbreakable");
  EXPECT_EQ(wrap("", 4, 0), "");
}

}  // namespace
}  // namespace forebay::cli
