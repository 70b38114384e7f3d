// Program files: cells, inheritance, what is refused.
#include "lab/program_file.h"

#include <gtest/gtest.h>

#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay::lab {
namespace {

Result<LabProgram> read(const std::string& text) {
  MemoryStorage storage;
  storage.put("arms.toml", text);
  return read_program(storage, "arms.toml");
}

TEST(ProgramFile, CellsInheritFromTheirParents) {
  const Result<LabProgram> program = read(R"(
[program]
recipe = "toy.toml"
set = ["run.steps=120"]
budget_s = 100
control = "dense"
gates = ["gap-flat"]
[cell.dense]
role = "reference"
[cell.sr]
parent = "dense"
set = ["wire.codec=sr"]
kill = ["gap", "stalled"]
[cell.rn]
parent = "sr"
set = ["wire.rounding=nearest"]
gates = []
)");
  ASSERT_OK(program);
  EXPECT_EQ(program->name, "arms");
  EXPECT_EQ(program->command, (std::vector<std::string>{"forebay", "train", "grpo"}));
  ASSERT_EQ(program->cells.size(), 3u);
  EXPECT_EQ(program->cells[0].role, Role::kReference);
  EXPECT_EQ(program->settings_of(program->cells[2]),
            (std::vector<std::string>{"run.steps=120", "wire.codec=sr", "wire.rounding=nearest"}));
  EXPECT_EQ(program->cells[1].gates.size(), 1u);
  EXPECT_EQ(program->cells[1].kill.size(), 2u);
  EXPECT_EQ(program->cells[2].gates.size(), 0u);
  EXPECT_EQ(program->cells[2].kill.size(), 1u);  // not-finite
}

TEST(ProgramFile, MistakesAreNamed) {
  const std::string head = "[program]\nbudget_s = 1\n";
  const auto fails = [&](const std::string& text, Code code, auto... parts) {
    return fails_with(read(text), code, "arms.toml", parts...);
  };
  EXPECT_TRUE(fails(head, Code::kInvalidArgument, "no cells"));
  EXPECT_TRUE(fails("[cell.a]\nset = []\n", Code::kInvalidArgument, "budget_s"));
  EXPECT_TRUE(fails(head + "[cell.a]\nparent = 'b'\n[cell.b]\nset = []\n", Code::kInvalidArgument, "cell a",
                    "parent b"));
  EXPECT_TRUE(fails(head + "[cell.a]\ngates = ['G9']\n", Code::kNotFound, "cell a", "G9"));
  EXPECT_TRUE(fails(head + "[cell.a]\nkill = ['x']\n", Code::kNotFound, "cell a", "'x'"));
  EXPECT_TRUE(fails(head + "[cell.a]\nsets = []\n", Code::kInvalidArgument, "cell.a.sets", "cell.a.set"));
  EXPECT_TRUE(fails(head + "bar = 3\n[cell.a]\nset = []\n", Code::kInvalidArgument, "program.bar"));
  EXPECT_TRUE(fails(head + "[cell.\"a/../b\"]\nset = []\n", Code::kInvalidArgument, "make a name"));
  EXPECT_TRUE(fails(head + "control = 'x'\n[cell.a]\nset = []\n", Code::kInvalidArgument, "control is x"));
  EXPECT_TRUE(fails(head + "[cell.a]\ngates = ['dense-drift']\n", Code::kInvalidArgument, "control"));
}

}  // namespace
}  // namespace forebay::lab
