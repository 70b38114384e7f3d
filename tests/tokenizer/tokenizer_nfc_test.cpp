#include <string>
#include <utility>

#include "support/result_matchers.h"
#include "tokenizer/nfc.h"

namespace forebay {
namespace {

const NfcNormalizer& nfc() {
  static const NfcNormalizer normalizer = NfcNormalizer::create().value();
  return normalizer;
}

std::string normalized(std::string_view text) {
  std::string buffer;
  return std::string(nfc().normalize(text, buffer));
}

TEST(Nfc, ComposesDecomposesAndOrders) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"e\u0301", "\u00E9"},
      {"xe\u0301y e\u0301", "x\u00E9y \u00E9"},
      {"o\u0302\u0323", "\u1ED9"},
      {"q\u0307\u0323", "q\u0323\u0307"},
      {"\u00E9\u0323", "\u1EB9\u0301"},
      {"\u0301", "\u0301"},
      {"\u0301\u0323a", "\u0323\u0301a"},
      {"\u212B\u2126\u212A", "\u00C5\u03A9K"},  // singletons
      {"\u0344", "\u0308\u0301"},               // a mark that decomposes
      {"\u0958", "\u0915\u093C"},               // excluded from composition
      {"\u09C7\u09BE", "\u09CB"},               // the second is a starter
      {"\u1100\u1161\u11A8", "\uAC01"},         // Hangul: L V T
      {"\uAC00\u11A8", "\uAC01"},               // LV T
      {"\u1100\u11A8", "\u1100\u11A8"},
      {"\u304B\u3099", "\u304C"},
      {"\uF900", "\u8C48"},
      {"\U000110A5\U000110BA", "\U000110AB"},
      {"\u3042\u0E33\u0301", "\u3042\u0E33\u0301"},
  };
  for (const auto& [text, wanted] : cases) {
    EXPECT_EQ(normalized(text), wanted) << text;
    EXPECT_EQ(normalized(wanted), wanted) << text;
    // Neighbours that are ASCII, composed, or East Asian take no part.
    EXPECT_EQ(normalized("a\u00E9\u8A9E" + text + "\u00E9z"), "a\u00E9\u8A9E" + wanted + "\u00E9z");
  }
}

TEST(Nfc, TextInNormalFormIsNotCopied) {
  std::string buffer;
  for (std::string_view text :
       {"plain", "caf\u00E9", "\u65E5\u672C\u8A9E", "\uAC00\uB098", "\u1EB9", "\U0001F600"}) {
    EXPECT_EQ(nfc().normalize(text, buffer).data(), text.data()) << text;
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(Nfc, AMegabyteOfMarksInWrongOrderIsSortedInTime) {
  std::string text = "a", wanted = "\u1EA1";
  const int n = 1 << 18;
  for (int i = 0; i < n; ++i) text += "\u0301\u0323";
  // One dot below joins the letter; the others come before all acute accents.
  for (int i = 1; i < n; ++i) wanted += "\u0323";
  for (int i = 0; i < n; ++i) wanted += "\u0301";
  EXPECT_TRUE(normalized(text) == wanted);
}

}  // namespace
}  // namespace forebay
