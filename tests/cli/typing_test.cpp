// What is typed, before any terminal: the line being edited, and messages of several lines.
#include <gtest/gtest.h>

#include "cli/edit_buffer.h"
#include "cli/message_input.h"

namespace forebay::cli {
namespace {

TEST(EditBuffer, MovesByCharactersAndWords) {
  EditBuffer line;
  line.insert("one t\xc3\xa9 \xe6\x9d\xb1");
  line.move_left();
  EXPECT_EQ(line.cursor(), line.text().size() - 3);
  line.move_left();
  line.move_left();
  EXPECT_EQ(line.cursor(), 5u);
  line.move_right();
  EXPECT_EQ(line.cursor(), 7u);
  line.move_word_left();
  EXPECT_EQ(line.cursor(), 4u);
  line.move_word_left();
  line.move_word_left();
  EXPECT_EQ(line.cursor(), 0u);
  line.move_left();
  EXPECT_EQ(line.cursor(), 0u);
  line.move_word_right();
  EXPECT_EQ(line.cursor(), 3u);
  line.move_to_end();
  line.move_right();
  EXPECT_EQ(line.cursor(), line.text().size());
}

TEST(EditBuffer, InsertsAndErasesAtTheCursor) {
  EditBuffer line;
  line.set("ad");
  line.move_left();
  line.insert("b\xc3\xa9");
  EXPECT_EQ(line.text(),
            "ab\xc3\xa9"
            "d");
  line.erase_before();
  EXPECT_EQ(line.text(), "abd");
  line.erase_after();
  EXPECT_EQ(line.text(), "ab");
  line.erase_after();
  EXPECT_EQ(line.text(), "ab");
  line.insert(" cd  ef");
  line.erase_word_before();
  EXPECT_EQ(line.text(), "ab cd  ");
  line.erase_word_before();
  EXPECT_EQ(line.text(), "ab ");
  line.move_left();
  line.erase_to_end();
  EXPECT_EQ(line.text(), "ab");
  line.move_left();
  line.erase_to_start();
  EXPECT_EQ(line.text(), "b");
  EXPECT_EQ(line.cursor(), 0u);
  line.erase_before();
  EXPECT_EQ(line.text(), "b");
}

TEST(Screen, PlacesWideCharactersAndEdges) {
  EXPECT_EQ(position_after("", 10), (ScreenPosition{0, 0}));
  EXPECT_EQ(position_after("abc", 10), (ScreenPosition{0, 3}));
  EXPECT_EQ(position_after("abcde", 5), (ScreenPosition{1, 0}));
  EXPECT_EQ(position_after("abcdefg", 5), (ScreenPosition{1, 2}));
  EXPECT_EQ(position_after("\xe6\x9d\xb1\xe4\xba\xac", 10), (ScreenPosition{0, 4}));
  // The second wide character does not fit in the last column.
  EXPECT_EQ(position_after("a\xe6\x9d\xb1\xe4\xba\xac", 4), (ScreenPosition{1, 2}));
  // A combining accent takes no column.
  EXPECT_EQ(position_after("e\xcc\x81x", 10), (ScreenPosition{0, 2}));
}

TEST(Screen, ShowsLineEndsAsSigns) {
  EXPECT_EQ(displayed("a\nb\tc\x01"),
            "a\xe2\x86\xb5"
            "b c");
}

std::string joined(std::initializer_list<const char*> lines) {
  MessageAssembler assembler;
  std::string out;
  for (const char* line : lines)
    if (const std::optional<std::string> message = assembler.push(line)) out += "<" + *message + ">";
  return assembler.in_progress() ? out + "..." : out;
}

TEST(Messages, JoinLines) {
  EXPECT_EQ(joined({"hello"}), "<hello>");
  EXPECT_EQ(joined({"a\\", "b\\", "c", "d"}), "<a\nb\nc><d>");
  EXPECT_EQ(joined({"a\\"}), "...");
  EXPECT_EQ(joined({"\"\"\"", "a", "", "b", "\"\"\""}), "<a\n\nb>");
  EXPECT_EQ(joined({"\"\"\"a", "b\"\"\"", "c"}), "<a\nb><c>");
  EXPECT_EQ(joined({"\"\"\"one line\"\"\""}), "<one line>");
  EXPECT_EQ(joined({"\"\"\"", "a\\", "\"\"\""}), "<a\\>");
  EXPECT_EQ(joined({"\"\"\"", "\"\"\""}), "<>");
  EXPECT_EQ(joined({"pasted\ntwo lines"}), "<pasted\ntwo lines>");
}

TEST(Messages, BlocksAreNoCommands) {
  MessageAssembler assembler;
  EXPECT_EQ(assembler.push("\"\"\"/quit\"\"\""), "/quit");
  EXPECT_TRUE(assembler.was_block());
  EXPECT_EQ(assembler.push("/quit"), "/quit");
  EXPECT_FALSE(assembler.was_block());
}

TEST(Messages, CanBeGivenUp) {
  MessageAssembler assembler;
  EXPECT_EQ(assembler.push("\"\"\"begun"), std::nullopt);
  assembler.clear();
  EXPECT_FALSE(assembler.in_progress());
  EXPECT_EQ(assembler.push("next"), "next");
}

TEST(Commands, HaveANameAndTheRest) {
  const auto parsed = [](const char* text) {
    const std::optional<TypedCommand> command = parse_command(text);
    return command ? command->name + "|" + command->argument : "none";
  };
  EXPECT_EQ(parsed("/system Be  brief. "), "system|Be  brief.");
  EXPECT_EQ(parsed("/reset"), "reset|");
  EXPECT_EQ(parsed("/save   a b.json"), "save|a b.json");
  EXPECT_EQ(parsed("/"), "|");
  EXPECT_EQ(parsed("not /one"), "none");
  EXPECT_EQ(parsed("/etc/passwd\nline"), "none");
}

}  // namespace
}  // namespace forebay::cli
