#include "cli/client_config.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/input.h"
#include "core/parse.h"

namespace forebay::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Some clients refuse to start without a key.
std::string key_of(const ClientTarget& target) {
  return target.api_key.empty() ? "none" : target.api_key;
}

Result<Json> parse_object(const std::optional<std::string>& existing) {
  if (!existing || existing->find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  Json json;
  try {
    json = Json::parse(*existing);
  } catch (const Json::exception& error) {
    return Error{
        Code::kInvalidArgument,
        fmt::format("not plain JSON, so it is left alone (comments would be lost): {}", error.what())};
  }
  if (!json.is_object())
    return Error{Code::kInvalidArgument, fmt::format("{}, expected an object", json.type_name())};
  return json;
}

/// Puts `ours` into `theirs`, objects member by member.
Result<void> merge(Json& theirs, const Json& ours, const std::string& path) {
  for (const auto& [name, value] : ours.items()) {
    const std::string at = path.empty() ? name : path + "." + name;
    if (!value.is_object() || !theirs.contains(name)) {
      if (theirs.contains(name) && theirs[name].is_structured())
        return Error{Code::kInvalidArgument,
                     fmt::format("{}: {}, expected a text", at, theirs[name].type_name())};
      theirs[name] = value;
      continue;
    }
    if (!theirs[name].is_object())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: {}, expected an object", at, theirs[name].type_name())};
    TRY(merge(theirs[name], value, at));
  }
  return {};
}

Result<std::string> merged(const std::optional<std::string>& existing, const Json& ours) {
  Json json = TRY(parse_object(existing));
  TRY(merge(json, ours, ""));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<ClientConfig> claude(const ClientTarget& t, const std::optional<std::string>& existing) {
  const Json ours = {{"env",
                      {{"ANTHROPIC_BASE_URL", t.url},
                       {"ANTHROPIC_AUTH_TOKEN", key_of(t)},
                       {"ANTHROPIC_MODEL", t.model},
                       {"ANTHROPIC_DEFAULT_HAIKU_MODEL", t.model}}}};
  std::string text = TRY(merged(existing, ours));
  return ClientConfig{client_file("claude"), std::move(text), "run claude in this directory"};
}

Result<ClientConfig> opencode(const ClientTarget& t, const std::optional<std::string>& existing) {
  Json ours = Json::object();
  if (!existing) ours["$schema"] = "https://opencode.ai/config.json";
  ours["provider"]["forebay"] = {{"npm", "@ai-sdk/openai-compatible"},
                                 {"name", "Forebay"},
                                 {"options", {{"baseURL", t.url + "/v1"}, {"apiKey", key_of(t)}}},
                                 {"models", {{t.model, {{"name", t.model}}}}}};
  std::string text = TRY(merged(existing, ours));
  return ClientConfig{client_file("opencode"), std::move(text),
                      fmt::format("run opencode -m forebay/{} in this directory", t.model)};
}

/// A JSON string is a TOML basic string.
std::string quoted(const std::string& text) {
  return Json(text).dump();
}

Result<ClientConfig> codex(const ClientTarget& t, const std::optional<std::string>& existing) {
  std::string tables =
      fmt::format("[model_providers.forebay]\nname = \"Forebay\"\nbase_url = {}\nwire_api = \"responses\"\n",
                  quoted(t.url + "/v1"));
  if (!t.api_key.empty())
    tables += fmt::format("http_headers = {{ Authorization = {} }}\n", quoted("Bearer " + t.api_key));
  tables += fmt::format("\n[profiles.forebay]\nmodel = {}\nmodel_provider = \"forebay\"\n", quoted(t.model));
  std::string text = TRY(with_toml_tables(existing.value_or(""), tables));
  return ClientConfig{client_file("codex"), std::move(text), "run codex --profile forebay"};
}

Result<ClientConfig> openai(const ClientTarget& t, const std::optional<std::string>& existing) {
  return ClientConfig{client_file("openai"),
                      with_env_lines(existing.value_or(""),
                                     {{"OPENAI_BASE_URL", t.url + "/v1"}, {"OPENAI_API_KEY", key_of(t)}}),
                      "set -a; . ./.env; set +a, or let the program read the file"};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// Which lines of a TOML text are inside a string of several lines.
std::vector<bool> inside_strings(const std::vector<std::string>& lines) {
  std::vector<bool> inside;
  std::string_view open;
  for (const std::string& line : lines) {
    inside.push_back(!open.empty());
    for (size_t at = 0; at < line.size();) {
      const std::string_view rest = std::string_view(line).substr(at);
      if (!open.empty()) {
        if (open == "\"\"\"" && rest[0] == '\\') {
          at += 2;
        } else if (rest.starts_with(open)) {
          at += open.size();
          open = {};
        } else {
          ++at;
        }
        continue;
      }
      if (rest[0] == '#') break;
      if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
        open = rest[0] == '"' ? "\"\"\"" : "'''";
        at += 3;
      } else if (rest[0] == '"' || rest[0] == '\'') {
        size_t end = 1;
        while (end < rest.size() && rest[end] != rest[0]) end += rest[0] == '"' && rest[end] == '\\' ? 2 : 1;
        at += end + 1;
      } else {
        ++at;
      }
    }
  }
  return inside;
}

/// "a.b" of a line "[a.b] # ..."; empty for other lines and for lists of tables.
std::string table_of(const std::string& line) {
  std::string_view text = trimmed(line);
  if (!text.starts_with('[') || text.starts_with("[[")) return {};
  const size_t end = text.find(']');
  if (end == std::string_view::npos) return {};
  std::string name;
  for (const char c : text.substr(1, end - 1))
    if (c != ' ' && c != '\t' && c != '"' && c != '\'') name += c;
  return name;
}

}  // namespace

Result<std::string> with_toml_tables(std::string_view existing, std::string_view tables) {
  std::vector<std::string> lines = lines_of(existing);
  // What we add has no strings of several lines and no comments.
  std::vector<std::vector<std::string>> ours;
  for (const std::string& line : lines_of(tables)) {
    if (!table_of(line).empty()) ours.emplace_back();
    if (!line.empty()) ours.back().push_back(line);
  }
  for (const std::vector<std::string>& table : ours) {
    const std::string name = table_of(table[0]);
    const std::string parent = name.substr(0, name.find('.'));
    const std::vector<bool> inside = inside_strings(lines);
    const auto is_header = [&](size_t i) { return !inside[i] && trimmed(lines[i]).starts_with('['); };
    size_t first = lines.size();
    std::string current;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (inside[i]) continue;
      if (is_header(i)) {
        current = table_of(lines[i]);
        if (current == name && first == lines.size()) first = i;
        continue;
      }
      // The same table in another spelling.
      const std::string_view key = trimmed(std::string_view(lines[i]).substr(0, lines[i].find('=')));
      const bool clash = (current.empty() && (key == parent || key.starts_with(parent + "."))) ||
                         (current == parent && (key == "forebay" || key.starts_with("forebay.")));
      if (clash && lines[i].find('=') != std::string::npos)
        return Error{
            Code::kInvalidArgument,
            fmt::format("line {}: '{}' is written in a way that cannot be added to; write it as [{}]", i + 1,
                        key, name)};
    }
    if (first == lines.size()) {
      if (!lines.empty() && !trimmed(lines.back()).empty()) lines.emplace_back();
      lines.insert(lines.end(), table.begin(), table.end());
      continue;
    }
    size_t end = first + 1;
    while (end < lines.size() && !is_header(end)) ++end;
    // Comments and blank lines before the next table are the next table's.
    const size_t next = end;
    while (end > first + 1 && !inside[end - 1] && next < lines.size() &&
           (trimmed(lines[end - 1]).empty() || trimmed(lines[end - 1]).starts_with('#')))
      --end;
    while (end > first + 1 && trimmed(lines[end - 1]).empty()) --end;
    lines.erase(lines.begin() + static_cast<long>(first), lines.begin() + static_cast<long>(end));
    lines.insert(lines.begin() + static_cast<long>(first), table.begin(), table.end());
  }
  return joined(lines);
}

std::string with_env_lines(std::string_view existing,
                           const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> lines = lines_of(existing);
  for (const auto& [name, value] : values) {
    const std::string line = name + "=" + value;
    const auto sets = [&](const std::string& one) {
      std::string_view text = trimmed(one);
      if (text.starts_with("export ")) text = trimmed(text.substr(7));
      return text.starts_with(name) && trimmed(text.substr(name.size())).starts_with('=');
    };
    const auto found = std::find_if(lines.begin(), lines.end(), sets);
    if (found == lines.end())
      lines.push_back(line);
    else
      *found = trimmed(*found).starts_with("export ") ? "export " + line : line;
  }
  return joined(lines);
}

const std::vector<std::string>& client_names() {
  static const std::vector<std::string> names = {"claude", "codex", "opencode", "openai"};
  return names;
}

Path client_file(std::string_view client) {
  if (client == "claude") return ".claude/settings.local.json";
  if (client == "codex") return "~/.codex/config.toml";
  if (client == "opencode") return "opencode.json";
  return ".env";
}

Result<ClientConfig> client_config(std::string_view client, const ClientTarget& target,
                                   const std::optional<std::string>& existing) {
  if (client == "claude") return claude(target, existing);
  if (client == "codex") return codex(target, existing);
  if (client == "opencode") return opencode(target, existing);
  return openai(target, existing);
}

}  // namespace forebay::cli
