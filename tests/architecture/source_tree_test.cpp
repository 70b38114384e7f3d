// The readers must see what the architecture test relies on, or it would pass by seeing nothing.
#include "source_tree.h"

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(SourceTree, FindsQuotedIncludesOnly) {
  EXPECT_EQ(quoted_includes("#include \"core/log.h\"\n#include <core/path.h>\n  #  include \"a/b.inc\"\n"
                            "// #include \"not/this.h\"\nint x;\n"),
            (std::vector<std::string>{"core/log.h", "a/b.inc"}));
}

TEST(SourceTree, ReadsTheListsOfALibrary) {
  const LibraryLists lists = library_lists(
      "forebay_library(kernels\n  SOURCES matmul.cpp arch/rope.cpp  # forebay_model\n"
      "  AVX2 matmul_avx2.cpp\n  LINK forebay_quant fmt::fmt)\n"
      "target_link_libraries(forebay_kernels PRIVATE forebay_gguf)\n");
  EXPECT_EQ(lists.sources, (std::set<std::string>{"matmul.cpp", "arch/rope.cpp", "matmul_avx2.cpp"}));
  EXPECT_EQ(lists.avx2, (std::set<std::string>{"matmul_avx2.cpp"}));
  EXPECT_EQ(lists.links, (std::set<std::string>{"quant", "gguf"}));
}

TEST(SourceTree, FindsMachinePaths) {
  const std::string slash = "/";  // split, so that this file does not contain what it looks for
  EXPECT_EQ(machine_path_in("open(\"" + slash + "tmp/x.gguf\")"), slash + "tmp/x.gguf");
  EXPECT_EQ(machine_path_in("cd " + slash + "root"), slash + "root");
  EXPECT_EQ(machine_path_in("see " + slash + "home/me/notes.txt now"), slash + "home/me/notes.txt");
  EXPECT_EQ(machine_path_in("-I" + slash + "work"), "") << "part of a word";
  for (const char* harmless : {"src/core/work.cpp", "https://example.org/home/x", "../work/x", "${dir}/tmp/x",
                               "/workers", "/proc/self/status", "and/or", "\"/home.html\""})
    EXPECT_EQ(machine_path_in(harmless), "") << harmless;
}

TEST(SourceTree, SeesThisRepository) {
  const std::vector<Path> tests = files_under("tests/architecture", {".cpp"});
  EXPECT_EQ(tests.size(), 3u);
  EXPECT_NE(std::find(tests.begin(), tests.end(), Path("tests/architecture/source_tree_test.cpp")),
            tests.end());
  EXPECT_FALSE(read_text_file(source_root() / "src/core/log.h").empty());
  const std::vector<std::string> folders = source_folders();
  EXPECT_NE(std::find(folders.begin(), folders.end(), "core"), folders.end());
}

}  // namespace
}  // namespace forebay
