#include "lab/program_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "recipe/recipe.h"

namespace forebay::lab {
namespace {

constexpr std::pair<std::string_view, Role> kRoles[] = {{"entrant", Role::kEntrant},
                                                        {"reference", Role::kReference}};

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

/// The names that this list of a cell (or, without one, of the program) gives.
std::vector<std::string> names_of(Recipe& recipe, const std::string& key,
                                  const std::vector<std::string>& usual) {
  std::vector<std::string> names = usual;
  recipe.get(key, names);
  return names;
}

Result<Cell> read_cell(Recipe& recipe, const std::string& name, const std::vector<std::string>& gates,
                       const std::vector<std::string>& kill) {
  const std::string at = "cell." + name + ".";
  Cell cell;
  cell.name = name;
  recipe.get(at + "parent", cell.parent);
  recipe.get(at + "set", cell.settings);
  recipe.get<Role>(at + "role", cell.role, kRoles);
  recipe.get(at + "limit_s", cell.limit_s, 0, 1e9);
  for (const std::string& gate : names_of(recipe, at + "gates", gates)) {
    Result<Gate> found = gate_named(gate);
    if (!found) return std::move(found).error().in(recipe.name() + ": cell " + name);
    cell.gates.push_back(*found);
  }
  for (const std::string& trigger : names_of(recipe, at + "kill", kill)) {
    Result<KillTrigger> found = trigger_named(trigger);
    if (!found) return std::move(found).error().in(recipe.name() + ": cell " + name);
    cell.kill.push_back(*found);
  }
  return cell;
}

}  // namespace

const Cell* LabProgram::find(std::string_view cell) const {
  for (const Cell& c : cells)
    if (c.name == cell) return &c;
  return nullptr;
}

std::vector<std::string> LabProgram::settings_of(const Cell& cell) const {
  std::vector<std::string> out = settings;
  if (const Cell* parent = cell.parent.empty() ? nullptr : find(cell.parent)) out = settings_of(*parent);
  out.insert(out.end(), cell.settings.begin(), cell.settings.end());
  return out;
}

Result<LabProgram> read_program(Storage& storage, const Path& path) {
  Recipe recipe = TRY(Recipe::read(storage, path, {}));
  LabProgram program;
  program.name = path.stem().string();
  program.command = {"forebay", "train", "grpo"};
  recipe.get("program.name", program.name);
  recipe.get("program.command", program.command);
  recipe.get("program.recipe", program.recipe);
  recipe.get("program.set", program.settings);
  recipe.get("program.budget_s", program.budget_s, 0, 1e9);
  recipe.get("program.devices", program.devices, 1, 1 << 20);
  recipe.get("program.control", program.control);
  recipe.get("program.wire_bits", program.wire_bits, 0, 1e12);
  recipe.get("program.horizon", program.horizon, 0, 1 << 30);
  std::vector<std::string> gates, kill = {"not-finite"};
  recipe.get("program.gates", gates);
  recipe.get("program.kill", kill);
  const auto refuse = [&](std::string message) {
    return Error{Code::kInvalidArgument, fmt::format("{}: {}", path.string(), message)};
  };
  for (const std::string& name : recipe.names_below("cell")) {
    if (!is_plain(name)) return refuse(fmt::format("cell '{}': letters, digits, - and _ make a name", name));
    Cell cell = TRY(read_cell(recipe, name, gates, kill));
    if (!cell.parent.empty() && program.find(cell.parent) == nullptr)
      return refuse(fmt::format("cell {}: its parent {} does not stand before it", name, cell.parent));
    program.cells.push_back(std::move(cell));
  }
  TRY(recipe.finish());
  if (program.cells.empty()) return refuse("no cells");
  if (program.command.empty()) return refuse("program.command is empty");
  if (program.budget_s <= 0) return refuse("program.budget_s is missing: a program has an end");
  if (!program.control.empty() && program.find(program.control) == nullptr)
    return refuse(fmt::format("program.control is {}, which is no cell", program.control));
  const bool needs_control = std::any_of(program.cells.begin(), program.cells.end(), [](const Cell& cell) {
    return std::any_of(cell.gates.begin(), cell.gates.end(),
                       [](const Gate& gate) { return gate.statistic == Statistic::kOfControl; });
  });
  if (needs_control && program.control.empty())
    return refuse("a gate compares with the control, and program.control names none");
  return program;
}

}  // namespace forebay::lab
