/// Any bytes as TOML: one line of error, or a recipe whose resolved text is the same recipe.
#include <algorithm>
#include <cstdint>

#include "fuzz.h"
#include "recipe/diff.h"
#include "recipe/recipe.h"

namespace forebay {
namespace {

void check_one_line(const Error& error) {
  FUZZ_ASSERT(!error.message.empty());
  FUZZ_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

/// Whether all of it was understood.
bool ask(Recipe& recipe) {
  bool flag = false;
  int64_t whole = 3;
  double number = 0.5;
  std::string text;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  recipe.get("a.flag", flag);
  recipe.get("a.whole", whole, -10, int64_t{1} << 40);
  recipe.get("a.number", number, -1e300, 1e300);
  recipe.get("b.text", text);
  recipe.get("b.numbers", numbers);
  recipe.get("b.texts", texts);
  const Result<void> finished = recipe.finish();
  if (!finished) check_one_line(finished.error());
  return finished.has_value();
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The same bytes as a setting's value: whatever they are, they are one value of that key.
  const std::vector<std::string> settings = {"b.text=" + std::string(text)};
  Result<Recipe> set = Recipe::parse("", "set", settings);
  FUZZ_ASSERT(set.has_value());
  ask(*set);
  FUZZ_ASSERT(set->names_below("b").size() == 1);

  Result<Recipe> recipe = Recipe::parse(text, "fuzz", {});
  if (!recipe) {
    check_one_line(recipe.error());
    return 0;
  }
  const bool understood = ask(*recipe);
  const Result<Recipe> again_parsed = Recipe::parse(recipe->resolved(), "resolved", {});
  FUZZ_ASSERT(again_parsed.has_value());
  Recipe again = *again_parsed;
  FUZZ_ASSERT(ask(again));
  FUZZ_ASSERT(again.resolved() == recipe->resolved());
  const auto values = resolved_values(recipe->resolved(), "resolved");
  FUZZ_ASSERT(values.has_value() && *values == recipe->values());
  (void)understood;
  return 0;
}

FuzzSeeds fuzz_seeds() {
  return {
      {"[a]\nflag = true\nwhole = 12\nnumber = -1.5e3\n[b]\ntext = \"x\\n\\u00e9\"\nnumbers = [1, 2.5]\n"
       "texts = ['a', \"b\"]\n",
       "a = { flag = false, number = inf }\nb.text = '''\nlong'''\n", "[[b]]\ntext = 2026-11-30T10:00:00Z\n"},
      {"[a]", "[[b]]", "a.flag = ", "\"\"\"", "'''", "\\u00", "1_000", "0x1f", "nan", "-0.0", "2026-11-30",
       "{", "}", "[", "]", " = ", "\n", "b.texts", "\"a.flag\""}};
}
