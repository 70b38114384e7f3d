#include "lab/registration.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/child_process.h"
#include "core/sha256.h"

namespace forebay::lab {
namespace {

constexpr std::chrono::minutes kDryRunLimit{5};

std::string section_of(const std::string& key) {
  const size_t point = key.rfind('.');
  return point == std::string::npos ? "" : key.substr(0, point);
}

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const size_t newline = text.rfind('\n');
  return std::string(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

std::string hash_of(const Registration& registration, const Cell& cell) {
  std::string text;
  for (const auto& [key, value] : registration.resolved) text += fmt::format("{} = {}\n", key, value);
  for (const Gate& gate : cell.gates)
    text += fmt::format("gate {} {} {} {} {} {} {:.17g}\n", gate.name, gate.metric,
                        static_cast<int>(gate.statistic), gate.first, gate.last, static_cast<int>(gate.side),
                        gate.bar);
  for (const KillTrigger& trigger : cell.kill)
    text += fmt::format("kill {} {} {:.17g} {}\n", trigger.name, name_of(trigger.reason), trigger.limit,
                        trigger.step);
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

}  // namespace

Result<Registration> attribute(std::string_view cell, std::string_view parent,
                               const std::vector<RecipeChange>& changes) {
  Registration out;
  out.cell = cell;
  std::vector<std::string> variables;
  for (const RecipeChange& change : changes) {
    if (change.from.empty() || change.to.empty()) {
      out.implied.push_back(change);
    } else {
      variables.push_back(change.key);
      out.variable = change;
    }
  }
  const auto refuse = [&](std::string message) {
    return Error{Code::kInvalidArgument, fmt::format("cell {} differs from {} in {}", cell, parent, message)};
  };
  if (variables.size() > 1)
    return refuse(fmt::format("{} variables, wanted one: {}", variables.size(), fmt::join(variables, ", ")));
  if (!out.variable)
    return refuse(out.implied.empty() ? "nothing" : "keys that only one of them has: " + out.implied[0].key);
  for (const RecipeChange& change : out.implied)
    if (section_of(change.key) != section_of(out.variable->key))
      return refuse(fmt::format("{} and in {}, which does not go with it", out.variable->key, change.key));
  return out;
}

std::vector<std::string> command_of(const LabProgram& program, const Cell& cell, const std::string& self,
                                    const Path& out, const std::vector<std::string>& more) {
  std::vector<std::string> words = program.command;
  for (std::string& word : words)
    if (word == "forebay") word = self;
  if (!program.recipe.empty()) words.insert(words.end(), {"--recipe", program.recipe});
  for (const std::string& setting : program.settings_of(cell)) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), {"--out", out.string()});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Result<std::vector<Registration>> register_cells(const LabProgram& program, const std::string& self,
                                                 const Path& directory) {
  std::vector<Registration> out;
  for (const Cell& cell : program.cells) {
    const std::string where = fmt::format("cell {}: dry run", cell.name);
    Result<Output> dry = output_of(
        command_of(program, cell, self, directory / "cells" / cell.name, {"--dry-run"}), kDryRunLimit);
    if (!dry) return std::move(dry).error().in(where);
    if (dry->code != 0)
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: exit code {}: {}", where, dry->code, last_line(dry->err))};
    auto resolved = TRY(resolved_values(dry->out, where));
    if (resolved.empty()) return Error{Code::kInvalidArgument, where + ": no resolved recipe came"};
    Registration registration;
    registration.cell = cell.name;
    if (!cell.parent.empty()) {
      const auto parent =
          std::find_if(out.begin(), out.end(), [&](const Registration& r) { return r.cell == cell.parent; });
      registration = TRY(attribute(cell.name, cell.parent, differences(parent->resolved, resolved)));
    }
    registration.resolved = std::move(resolved);
    registration.hash = hash_of(registration, cell);
    out.push_back(std::move(registration));
  }
  return out;
}

}  // namespace forebay::lab
