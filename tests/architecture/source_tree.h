/// Reads the repository's own sources: which includes, which libraries, which files.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace forebay {

using Path = std::filesystem::path;

/// The repository's root.
Path source_root();
/// Empty for a file that cannot be read.
std::string read_text_file(const Path& path);

/// Files under `directory` of the repository with one of these extensions (".h"), sorted, as paths from the
/// root. Build trees and hidden directories are left out.
std::vector<Path> files_under(const Path& directory, const std::set<std::string>& extensions);
/// The folders of src/.
std::vector<std::string> source_folders();

/// What the quoted includes of a source text name.
std::vector<std::string> quoted_includes(std::string_view source);

/// What a folder's CMakeLists.txt says in its forebay_library().
struct LibraryLists {
  std::set<std::string> sources;  // both lists
  std::set<std::string> avx2;
  std::set<std::string> links;  // "core" for forebay_core, from anywhere in the file
};
LibraryLists library_lists(std::string_view cmake);

/// The first absolute path of someone's machine in the text, or empty.
std::string machine_path_in(std::string_view text);

}  // namespace forebay
