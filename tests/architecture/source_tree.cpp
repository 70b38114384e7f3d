#include "source_tree.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace forebay {

namespace fs = std::filesystem;

namespace {

/// Words of a CMakeLists.txt, without comments, quotes and parentheses.
std::vector<std::string> cmake_tokens(std::string_view cmake) {
  std::vector<std::string> tokens;
  std::istringstream lines{std::string(cmake)};
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '(' || c == ')' || c == '"'; }, ' ');
    std::istringstream words(line);
    for (std::string word; words >> word;) tokens.push_back(word);
  }
  return tokens;
}

}  // namespace

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
  std::vector<std::string> names;
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    const auto skip = [&](std::string_view word) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
      const bool found = rest.starts_with(word);
      if (found) rest.remove_prefix(word.size());
      return found;
    };
    if (skip("#") && skip("include") && skip("\"")) names.emplace_back(rest.substr(0, rest.find('"')));
  }
  return names;
}

LibraryLists library_lists(std::string_view cmake) {
  static const std::set<std::string> kKeywords = {"SOURCES", "AVX2",    "LINK",
                                                  "PUBLIC",  "PRIVATE", "INTERFACE"};
  static const std::string kPrefix = "forebay_";
  LibraryLists lists;
  std::string keyword;
  for (const std::string& token : cmake_tokens(cmake)) {
    if (kKeywords.contains(token)) {
      keyword = token;
    } else if (token == "forebay_library" || token == "forebay_torch_library" || token.starts_with("add_") ||
               token.starts_with("target_")) {
      keyword.clear();
    } else if (token.starts_with(kPrefix) && !keyword.empty()) {
      // The libraries inside train/ are one row of the picture.
      const std::string name = token.substr(kPrefix.size());
      lists.links.insert(name.starts_with("train_") || name.starts_with("torch_") ? "train" : name);
    } else if (token.ends_with(".cpp")) {
      lists.sources.insert(token);
      if (keyword == "AVX2") lists.avx2.insert(token);
    }
  }
  return lists;
}

std::string machine_path_in(std::string_view text) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find('/'); at != text.npos; at = text.find('/', at + 1)) {
    // Not inside a longer path or an address: what stands before is none of their characters.
    if (at > 0 && (is_word(text[at - 1]) || std::string_view(".$~}>*/-").find(text[at - 1]) != text.npos))
      continue;
    const std::string_view path = text.substr(at, text.find_first_of(" \t\r\n\"'`)", at) - at);
    for (const std::string_view root : {"work", "tmp", "root", "home"}) {
      if (!path.substr(1).starts_with(root)) continue;
      const char next = path.size() > root.size() + 1 ? path[root.size() + 1] : ' ';
      if (!is_word(next) && next != '.' && next != '-') return std::string(path);
    }
  }
  return "";
}

}  // namespace forebay
