// Checks the picture in docs and ARCHITECTURE.md against what the sources do: who includes whom, who links
// whom, and a few habits that a reviewer would otherwise have to look for.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "source_tree.h"

namespace forebay {
namespace {

/// Bottom to top. A folder may use itself, what its row names, and (above tensor) core and tensor.
struct Folder {
  std::string name;
  std::set<std::string> may_use;
};
const std::vector<Folder> kFolders = {
    {"core", {}},
    {"tensor", {"core"}},
    {"quant", {}},
    {"gguf", {}},
    {"safetensors", {}},
    {"kernels", {"quant"}},
    {"tokenizer", {}},
    {"chat", {}},
    {"constrain", {"tokenizer", "chat"}},
    {"page", {}},
    {"experts", {}},
    {"trace", {"experts"}},
    {"model", {"quant", "gguf", "kernels", "experts"}},
    {"reuse", {"kernels", "gguf", "experts", "model"}},
    {"plan", {"quant", "gguf", "kernels", "experts", "model"}},
    {"session", {"gguf", "model"}},
    {"sampling", {}},
    {"engine",
     {"gguf", "kernels", "tokenizer", "constrain", "experts", "trace", "model", "reuse", "plan", "session",
      "sampling"}},
    {"convert", {"quant", "gguf", "safetensors", "tokenizer"}},
    {"synth", {"quant", "gguf", "tokenizer", "convert"}},
    {"replay", {"kernels", "experts", "trace"}},
    {"eval",
     {"quant", "gguf", "safetensors", "kernels", "tokenizer", "experts", "model", "reuse", "sampling",
      "engine"}},
    {"server", {"gguf", "tokenizer", "chat", "constrain", "page", "model", "sampling", "engine"}},
    {"recipe", {}},
    {"lab", {"recipe"}},
    {"cli", {"quant", "gguf",   "safetensors", "kernels",  "constrain", "tokenizer", "experts",
             "model", "plan",   "session",     "sampling", "engine",    "convert",   "synth",
             "trace", "replay", "eval",        "server",   "recipe",    "lab"}},
    {"train",
     {"quant", "gguf", "safetensors", "kernels", "tokenizer", "experts", "model", "sampling", "engine",
      "convert", "recipe", "cli"}},
};

/// Headers of include/forebay/: a folder may include those of the folders it may use. result.h is everyone's.
const std::map<std::string, std::string> kOwnerOfPublicHeader = {
    {"result.h", "core"},       {"io.h", "core"},        {"kv.h", "kernels"},     {"experts.h", "experts"},
    {"sampling.h", "sampling"}, {"options.h", "engine"}, {"session.h", "engine"}, {"engine.h", "engine"},
};

const std::set<std::string> kMayReadEnvironment = {"core", "cli"};

const std::set<std::string> kSourceExtensions = {".h", ".cpp", ".inc"};

size_t row_of(const std::string& folder) {
  size_t row = 0;
  while (row < kFolders.size() && kFolders[row].name != folder) ++row;
  return row;
}

bool may_use(const std::string& user, const std::string& used) {
  if (user == used) return true;
  const size_t row = row_of(user);
  if (row == kFolders.size()) return false;
  return kFolders[row].may_use.contains(used) ||
         (row > row_of("tensor") && (used == "core" || used == "tensor"));
}

/// "core" for src/core/log.h.
std::string folder_of(const Path& file) {
  return std::next(file.begin())->string();
}

/// By name or by a glob.
bool is_listed(const std::set<std::string>& sources, const std::string& name) {
  return std::any_of(sources.begin(), sources.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0;
  });
}

std::string folder_of_include(const std::string& include) {
  const Path path = include;
  if (*path.begin() != "forebay") return path.begin()->string();
  const auto owner = kOwnerOfPublicHeader.find(path.filename().string());
  return owner == kOwnerOfPublicHeader.end() ? "" : owner->second;
}

TEST(Architecture, TableIsInOrder) {
  for (size_t row = 0; row < kFolders.size(); ++row)
    for (const std::string& used : kFolders[row].may_use)
      EXPECT_LT(row_of(used), row) << kFolders[row].name << " may use " << used << ", which is not below it";
  EXPECT_TRUE(may_use("kernels", "quant"));
  EXPECT_TRUE(may_use("sampling", "core"));
  EXPECT_FALSE(may_use("quant", "kernels"));
  EXPECT_FALSE(may_use("core", "tensor"));
}

TEST(Architecture, EveryFolderHasARow) {
  for (const std::string& folder : source_folders())
    EXPECT_LT(row_of(folder), kFolders.size()) << "src/" << folder << " is not in the table of this test";
}

TEST(Architecture, EveryPublicHeaderHasAnOwner) {
  for (const Path& file : files_under("include", kSourceExtensions))
    EXPECT_TRUE(kOwnerOfPublicHeader.contains(file.filename().string())) << file;
}

TEST(Architecture, IncludesNameFilesByFolder) {
  for (const char* directory : {"src", "include"})
    for (const Path& file : files_under(directory, kSourceExtensions))
      for (const std::string& include : quoted_includes(read_text_file(source_root() / file)))
        EXPECT_TRUE(std::filesystem::exists(source_root() / "src" / include) ||
                    std::filesystem::exists(source_root() / "include" / include))
            << file << " includes \"" << include << "\": neither in src/ nor in include/";
}

TEST(Architecture, IncludesPointDown) {
  int n_includes = 0;
  for (const Path& file : files_under("src", kSourceExtensions))
    for (const std::string& include : quoted_includes(read_text_file(source_root() / file))) {
      ++n_includes;
      EXPECT_TRUE(may_use(folder_of(file), folder_of_include(include)) || include == "forebay/result.h")
          << file << " includes \"" << include << "\"";
    }
  EXPECT_GT(n_includes, 20);
}

TEST(Architecture, PublicHeadersIncludeOnlyEachOther) {
  for (const Path& file : files_under("include", kSourceExtensions))
    for (const std::string& include : quoted_includes(read_text_file(source_root() / file)))
      EXPECT_TRUE(include.starts_with("forebay/")) << file << " includes \"" << include << "\"";
}

TEST(Architecture, LibrariesLinkWhatTheyUse) {
  for (const std::string& folder : source_folders()) {
    const Path cmake = Path("src") / folder / "CMakeLists.txt";
    if (!std::filesystem::exists(source_root() / cmake)) continue;
    std::set<std::string> used;
    for (const Path& file : files_under(Path("src") / folder, kSourceExtensions))
      for (const std::string& include : quoted_includes(read_text_file(source_root() / file)))
        used.insert(folder_of_include(include));
    for (const std::string& link : library_lists(read_text_file(source_root() / cmake)).links) {
      if (link == folder || link == "flags") continue;
      EXPECT_TRUE(may_use(folder, link)) << cmake << " links forebay_" << link;
      EXPECT_TRUE(used.contains(link)) << cmake << " links forebay_" << link << " and includes nothing of it";
    }
  }
}

TEST(Architecture, EverySourceIsBuiltAndAvx2FilesGetTheirFlags) {
  for (const Path& file : files_under("src", {".cpp"})) {
    const Path directory = Path("src") / folder_of(file);
    const LibraryLists lists = library_lists(read_text_file(source_root() / directory / "CMakeLists.txt"));
    const std::string name = file.lexically_relative(directory).string();
    EXPECT_TRUE(is_listed(lists.sources, name)) << file << " is not in " << directory / "CMakeLists.txt";
    EXPECT_EQ(lists.avx2.contains(name), name.ends_with("_avx2.cpp"))
        << file << ": *_avx2.cpp, and nothing else, is listed under AVX2";
  }
}

TEST(Architecture, OnlyCoreAndCliReadTheEnvironment) {
  for (const Path& file : files_under("src", kSourceExtensions)) {
    if (kMayReadEnvironment.contains(folder_of(file))) continue;
    EXPECT_EQ(read_text_file(source_root() / file).find("getenv"), std::string::npos)
        << file << " reads the environment";
  }
}

TEST(Architecture, OnlyCoreTouchesFiles) {
  for (const Path& file : files_under("src", kSourceExtensions)) {
    if (folder_of(file) == "core") continue;
    const std::string source = read_text_file(source_root() / file);
    for (const char* way_around : {"<fstream>", "fopen(", "<fcntl.h>"})
      EXPECT_EQ(source.find(way_around), std::string::npos)
          << file << " uses " << way_around << ": files are reached through core/storage.h";
  }
}

TEST(Architecture, NoPathsOfSomeonesMachine) {
  const std::set<std::string> extensions = {"", ".h", ".cpp", ".inc", ".cmake", ".md", ".py", ".sh", ".txt"};
  size_t n_files = 0;
  for (const char* directory : {".", ".ci"})
    for (const Path& file : files_under(directory, extensions)) {
      // Text files are prose and code for models to read, except the build system's.
      if (file.extension() == ".txt" && file.filename() != "CMakeLists.txt") continue;
      if (file.filename() == ".git") continue;  // of a second working tree; says where the first is
      ++n_files;
      EXPECT_EQ(machine_path_in(read_text_file(source_root() / file)), "") << file;
    }
  EXPECT_GT(n_files, 50u);
}

}  // namespace
}  // namespace forebay
