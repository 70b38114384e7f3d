#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

std::string shown(const std::vector<std::string>& stops, const std::string& text, size_t step,
                  bool* matched = nullptr) {
  StopMatcher matcher(stops);
  std::string out;
  for (size_t i = 0; i < text.size(); i += step) out += matcher.push(std::string_view(text).substr(i, step));
  out += matcher.finish();
  if (matched != nullptr) *matched = matcher.matched();
  return out;
}

TEST(StopMatcher, FindsStopsAcrossEveryCut) {
  for (size_t step = 1; step <= 20; ++step) {
    bool matched = false;
    EXPECT_EQ(shown({"STOP", "\n\n"}, "one\ntwo STO STOP three", step, &matched), "one\ntwo STO ") << step;
    EXPECT_TRUE(matched);
    EXPECT_EQ(shown({"STOP"}, "nothing ST", step, &matched), "nothing ST") << step;
    EXPECT_FALSE(matched);
    EXPECT_EQ(shown({"aab"}, "aaab", step, &matched), "a") << step;
    EXPECT_EQ(shown({}, "free", step, &matched), "free") << step;
    EXPECT_EQ(shown({""}, "empty stops are ignored", step, &matched), "empty stops are ignored") << step;
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.push("abcE"), "abc");
  EXPECT_EQ(matcher.push("x"), "Ex");
  EXPECT_EQ(matcher.push("EN"), "");
  EXPECT_EQ(matcher.push("D tail"), "");
  EXPECT_TRUE(matcher.matched());
}

}  // namespace
}  // namespace forebay
