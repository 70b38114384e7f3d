/// Configuration of programs that talk to this server, as texts: what a file becomes when our keys are put
/// into it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "core/path.h"

namespace forebay::cli {

struct ClientTarget {
  std::string url = "http://127.0.0.1:8080";  // without a path
  std::string model = "forebay";              // what the client asks for
  std::string api_key;                        // empty: the server asks for none
};

struct ClientConfig {
  Path file;           // where it belongs: relative to the working directory, or under ~
  std::string text;    // what the file is to hold
  std::string how_to;  // one line: how to use it
};

/// Names that client_config knows: "claude", "codex", "opencode", "openai".
const std::vector<std::string>& client_names();

/// `existing`: the file's text, if there is one; all of it that is not ours stays as it is (JSON is laid out
/// anew). Errors: kInvalidArgument when it cannot be read, or something other than an object stands where
/// ours goes.
Result<ClientConfig> client_config(std::string_view client, const ClientTarget& target,
                                   const std::optional<std::string>& existing);
/// Where a client's file belongs.
Path client_file(std::string_view client);

// The parts, one per kind of file.

/// Replaces the tables that `tables` begins with headers for ("[a.b]" and their lines), and adds those that
/// are missing.
Result<std::string> with_toml_tables(std::string_view existing, std::string_view tables);
/// Replaces or adds NAME=value lines.
std::string with_env_lines(std::string_view existing,
                           const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace forebay::cli
