#include "source_tree.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

namespace forebay {

namespace fs = std::filesystem;

Path source_root() {
  return FOREBAY_SOURCE_DIR;
}

std::string read_text_file(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Path> files_under(const Path& directory, const std::set<std::string>& extensions) {
  std::vector<Path> files;
  if (!fs::is_directory(source_root() / directory)) return files;
  for (auto it = fs::recursive_directory_iterator(source_root() / directory);
       it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name.starts_with(".") || name == "build" || name == "__pycache__")) {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file() && extensions.contains(it->path().extension().string()))
      files.push_back(it->path().lexically_relative(source_root()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> source_folders() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(source_root() / "src"))
    if (entry.is_directory() && !fs::is_empty(entry)) folders.push_back(entry.path().filename().string());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> quoted_includes(std::string_view source) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*"([^"]+)\")");
  std::vector<std::string> names;
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line);)
    if (std::smatch match; std::regex_search(line, match, kInclude)) names.push_back(match[1]);
  return names;
}

LibraryLists library_lists(std::string_view cmake) {
  static const std::set<std::string> kKeywords = {"SOURCES", "AVX2",    "LINK",
                                                  "PUBLIC",  "PRIVATE", "INTERFACE"};
  static const std::regex kComment("#[^\n]*");
  static const std::regex kToken(R"re([^\s()"]+)re");
  static const std::string kPrefix = "forebay_";
  LibraryLists lists;
  const std::string text = std::regex_replace(std::string(cmake), kComment, "");
  std::string keyword;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kToken); it != std::sregex_iterator(); ++it) {
    const std::string token = it->str();
    if (kKeywords.contains(token)) {
      keyword = token;
    } else if (token == "forebay_library" || token.starts_with("add_") || token.starts_with("target_")) {
      keyword.clear();
    } else if (token.starts_with(kPrefix) && !keyword.empty()) {
      lists.links.insert(token.substr(kPrefix.size()));
    } else if (token.ends_with(".cpp")) {
      lists.sources.insert(token);
      if (keyword == "AVX2") lists.avx2.insert(token);
    }
  }
  return lists;
}

std::string machine_path_in(std::string_view text) {
  // Not inside a longer path or an address: what stands before is none of their characters.
  static const std::regex kMachinePath(R"((^|[^\w.$~}>*/-])(/(work|tmp|root|home)(?![\w.-])[^\s"'`)]*))");
  const std::string copy(text);
  std::smatch match;
  return std::regex_search(copy, match, kMachinePath) ? match[2].str() : "";
}

}  // namespace forebay
