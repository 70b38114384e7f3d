// Recipes: what is read, what is refused and with which words, and that a resolved recipe is the same recipe.
#include "recipe/recipe.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

enum class Scope { kStep, kToken };
constexpr std::pair<std::string_view, Scope> kScopes[] = {{"step", Scope::kStep}, {"token", Scope::kToken}};

/// One key of each kind.
struct Settings {
  bool on = false;
  int64_t steps = 100;
  double lr = 1e-3;
  std::string task = "add";
  std::vector<double> warm = {0, 0.5};
  std::vector<std::string> words = {};
  Scope scope = Scope::kStep;

  void ask(Recipe& recipe) {
    recipe.get("run.on", on);
    recipe.get("run.steps", steps, 1, 1000);
    recipe.get("grpo.lr", lr, 0, 1);
    recipe.get("grpo.task", task);
    recipe.get("grpo.warm", warm);
    recipe.get("grpo.words", words);
    recipe.get<Scope>("prf.scope", scope, kScopes);
  }
};

struct Asked {
  Settings settings;
  Result<Recipe> recipe;
  Result<void> finished;
};

Asked asked(std::string_view toml, const std::vector<std::string>& settings = {}) {
  Asked out{{}, Recipe::parse(toml, "a.toml", settings), {}};
  EXPECT_OK(out.recipe);
  if (!out.recipe) return out;
  out.settings.ask(*out.recipe);
  out.finished = out.recipe->finish();
  return out;
}

TEST(Recipe, DefaultsStayAndAreListed) {
  const Asked a = asked("");
  ASSERT_OK(a.finished);
  EXPECT_EQ(a.settings.steps, 100);
  EXPECT_EQ(a.recipe->resolved(),
            "grpo.lr = 0.001\ngrpo.task = \"add\"\ngrpo.warm = [0.0, 0.5]\ngrpo.words = []\n"
            "prf.scope = \"step\"\nrun.on = false\nrun.steps = 100\n");
}

TEST(Recipe, ReadsEveryKind) {
  const Asked a = asked(R"(
# a comment
run = { on = true, steps = 7 }
[grpo]
lr = 1  # a whole number is a number
task = "a \"b\" \\ \u00e9"
warm = [1, 2.5]
words = ["x", 'y']
[prf]
scope = "token"
)");
  ASSERT_OK(a.finished);
  EXPECT_TRUE(a.settings.on);
  EXPECT_EQ(a.settings.steps, 7);
  EXPECT_EQ(a.settings.lr, 1.0);
  EXPECT_EQ(a.settings.task, "a \"b\" \\ \xc3\xa9");
  EXPECT_EQ(a.settings.warm, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(a.settings.words, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(a.settings.scope, Scope::kToken);
}

TEST(Recipe, SettingsWinAndTheLastOfThemMost) {
  const Asked a = asked("run.steps = 7\ngrpo.task = \"add\"\n",
                        {"run.steps=8", "run.steps=9", "grpo.task=120", "prf.scope=token", "grpo.lr=2e-1",
                         "grpo.words=[\"p\"]", "run.on=true"});
  ASSERT_OK(a.finished);
  EXPECT_EQ(a.settings.steps, 9);
  EXPECT_EQ(a.settings.task, "120");  // text where text is asked for
  EXPECT_EQ(a.settings.scope, Scope::kToken);
  EXPECT_EQ(a.settings.lr, 0.2);
  EXPECT_EQ(a.settings.words, std::vector<std::string>{"p"});
  EXPECT_TRUE(a.settings.on);
  // What is not TOML is text, whole.
  EXPECT_EQ(asked("", {"grpo.task=a = b # c"}).settings.task, "a = b # c");
  EXPECT_EQ(asked("", {"grpo.task=1\nrun.steps = 3"}).settings.task, "1\nrun.steps = 3");
  EXPECT_EQ(asked("", {"grpo.task=2026-11-30"}).settings.task, "2026-11-30");
  EXPECT_EQ(asked("", {"grpo.task="}).settings.task, "");
  EXPECT_TRUE(fails_with(Recipe::parse("", "a.toml", std::vector<std::string>{"run.steps"}),
                         Code::kInvalidArgument, "--set run.steps", "section.key=value"));
}

TEST(Recipe, UnknownKeysAreRefusedWithTheNearest) {
  EXPECT_TRUE(fails_with(asked("run.on = true\nrun.step = 3\n").finished, Code::kInvalidArgument,
                         "a.toml:2:", "run.step", "nearest key is run.steps"));
  EXPECT_TRUE(fails_with(asked("", {"lr=3"}).finished, Code::kInvalidArgument, "--set", "lr", "grpo.lr"));
  EXPECT_TRUE(
      fails_with(asked("[grpo.lr]\nx = 1\n").finished, Code::kInvalidArgument, "grpo.lr.x", "grpo.lr"));
}

TEST(Recipe, WrongValuesNameTheLineAndWhatIsWanted) {
  const auto fails = [](std::string_view toml, auto... parts) {
    return fails_with(asked(toml).finished, Code::kInvalidArgument, parts...);
  };
  EXPECT_TRUE(fails("\n\ngrpo.lr = 'fast'", "a.toml:3: grpo.lr is 'fast': a number from 0 to 1"));
  EXPECT_TRUE(fails("grpo.lr = 1.5", "grpo.lr is 1.5"));
  EXPECT_TRUE(fails("grpo.lr = nan", "grpo.lr is nan"));
  EXPECT_TRUE(fails("run.steps = 0", "run.steps is 0: a whole number from 1 to 1000"));
  EXPECT_TRUE(fails("run.steps = 5.0", "run.steps is 5.0"));
  EXPECT_TRUE(fails("run.on = 1", "run.on is 1: true or false"));
  EXPECT_TRUE(fails("grpo.task = 5", "grpo.task is 5: text in quotes"));
  EXPECT_TRUE(fails("grpo.task = 2026-11-30", "a date"));
  EXPECT_TRUE(fails("grpo.warm = [1, 'x']", "[1, \"x\"]: a list of numbers"));
  EXPECT_TRUE(fails("grpo.words = ['x', 1]", "a list of texts"));
  EXPECT_TRUE(fails("grpo.words = [['x']]", "a list of texts"));
  EXPECT_TRUE(fails("prf.scope = 'stop'", "prf.scope is 'stop': one of step, token"));
  // A wrong value leaves the default in place.
  EXPECT_EQ(asked("run.steps = 0").settings.steps, 100);
  // The first one is reported.
  EXPECT_TRUE(fails("run.on = 1\nrun.steps = 0\nx = 1", "run.on"));
}

TEST(Recipe, NoTomlIsOneLineWithThePlace) {
  EXPECT_TRUE(fails_with(Recipe::parse("a = 1\nb = = 2", "a.toml", {}), Code::kCorrupt, "a.toml:2:"));
  EXPECT_TRUE(fails_with(Recipe::parse("a = 1\na = 2", "a.toml", {}), Code::kCorrupt, "a.toml:2:"));
  EXPECT_TRUE(
      fails_with(Recipe::parse("a.b = 1\n\"a.b\" = 2", "a.toml", {}), Code::kCorrupt, "a.b", "twice"));
}

TEST(Recipe, ResolvedReadsBackToTheSame) {
  const std::vector<std::string> texts = {
      "", "run.on = true\ngrpo.lr = 1e-7\nprf.scope = 'token'\n",
      "grpo.task = \"q\\\"\\n\\u0001\\\\ \\u00e9\"\ngrpo.warm = [1e300, -0.0, 0.1, 1e-320]\n"
      "grpo.words = ['', 'a, b', '[']\ngrpo.lr = 0.30000000000000004\n"};
  for (const std::string& text : texts) {
    const Asked first = asked(text);
    ASSERT_OK(first.finished);
    const Asked second = asked(first.recipe->resolved());
    ASSERT_OK(second.finished);
    EXPECT_EQ(second.recipe->resolved(), first.recipe->resolved());
    EXPECT_EQ(second.recipe->hash(), first.recipe->hash());
    EXPECT_EQ(second.settings.task, first.settings.task);
    EXPECT_EQ(second.settings.warm, first.settings.warm);
    EXPECT_EQ(second.settings.words, first.settings.words);
    EXPECT_EQ(second.settings.lr, first.settings.lr);
  }
  EXPECT_TRUE(std::signbit(asked(asked(texts[2]).recipe->resolved()).settings.warm[1]));
}

TEST(Recipe, HashIsOfMeaningNotOfSpelling) {
  // Written down: a change of it would make old records look like other runs.
  EXPECT_EQ(asked("").recipe->hash(), 17320709956243607352u);
  EXPECT_EQ(asked("run.steps = 100  # as ever").recipe->hash(), asked("").recipe->hash());
  EXPECT_EQ(asked("[grpo]\nlr = 1").recipe->hash(), asked("", {"grpo.lr=1.0"}).recipe->hash());
  EXPECT_NE(asked("run.steps = 101").recipe->hash(), asked("").recipe->hash());
}

TEST(Recipe, NamesBelowASectionInTheOrderOfTheFile) {
  const Result<Recipe> recipe =
      Recipe::parse("[cell.prf]\na = 1\n[cell.dense]\na = 1\nb.c = 2\n[other]\na = 1", "p.toml", {});
  ASSERT_OK(recipe);
  EXPECT_EQ(recipe->names_below("cell"), (std::vector<std::string>{"prf", "dense"}));
  EXPECT_EQ(recipe->names_below("cell.dense"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(recipe->names_below("gates").empty());
}

TEST(Recipe, ComesFromAFile) {
  MemoryStorage storage;
  storage.put("r.toml", "run.steps = 0");
  Result<Recipe> recipe = Recipe::read(storage, "r.toml", {});
  ASSERT_OK(recipe);
  Settings settings;
  settings.ask(*recipe);
  EXPECT_TRUE(fails_with(recipe->finish(), Code::kInvalidArgument, "r.toml:1: run.steps"));
  EXPECT_TRUE(fails_with(Recipe::read(storage, "none.toml", {}), Code::kNotFound, "none.toml"));
}

}  // namespace
}  // namespace forebay
