/// What each cell really is: its recipe as the trainer resolves it, and the one variable in which it differs
/// from its parent.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/program_file.h"
#include "recipe/diff.h"

namespace forebay::lab {

struct Registration {
  std::string cell;
  std::map<std::string, std::string> resolved;
  std::string hash;  // SHA-256 of the resolved recipe, the gates and the triggers with their bars
  std::optional<RecipeChange> variable;  // empty for a cell without parent
  /// Keys that came or went with the variable, because only one of the two values has a use for them.
  std::vector<RecipeChange> implied;
};

/// The one variable among these changes. Keys that both have with other values are variables; a key that only
/// one side has goes with the variable when it is in the variable's section. Errors, kInvalidArgument: none,
/// more than one, or a key of another section.
Result<Registration> attribute(std::string_view cell, std::string_view parent,
                               const std::vector<RecipeChange>& changes);

/// The command of a cell, as it is started (`more` at its end).
std::vector<std::string> command_of(const LabProgram& program, const Cell& cell, const std::string& self,
                                    const Path& out, const std::vector<std::string>& more);

/// Asks the trainer, with --dry-run, for every cell's resolved recipe. `self` stands for "forebay". Errors: a
/// dry run that fails (with its own message), and those of attribute().
Result<std::vector<Registration>> register_cells(const LabProgram& program, const std::string& self,
                                                 const Path& directory);

}  // namespace forebay::lab
