/// A program: cells that will be run, what each changes, and what they are held to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/storage.h"
#include "lab/gates.h"
#include "lab/kill.h"

namespace forebay::lab {

enum class Role {
  kEntrant,
  kReference,  // is compared with, is not ranked
};

struct Cell {
  std::string name;
  std::string parent;                 // empty: none
  std::vector<std::string> settings;  // its own "key=value"; the parent's come before them
  Role role = Role::kEntrant;
  std::vector<Gate> gates;
  std::vector<KillTrigger> kill;
  double limit_s = 0;  // 0: none but the program's
};

struct LabProgram {
  std::string name;
  std::vector<std::string> command;   // "forebay" as its first word is this program
  std::string recipe;                 // the root cells' file
  std::vector<std::string> settings;  // of all cells, before their own
  double budget_s = 0;                // device seconds: cells' wall time x devices
  int64_t devices = 1;
  std::string control;      // the cell that kOfControl gates and the ranking compare with
  double wire_bits = 0;     // most bits per token and leg that an entrant may use; 0: any
  int64_t horizon = 0;      // steps that an arm needs to be ranked; 0: the control's last step
  std::vector<Cell> cells;  // parents before children

  const Cell* find(std::string_view cell) const;
  /// The program's settings, then those of the cell's ancestors from the oldest, then its own.
  std::vector<std::string> settings_of(const Cell& cell) const;
};

/// Format: docs/lab.md. Errors name file and key: kInvalidArgument, kNotFound for a gate or trigger that is
/// not registered; those of recipes.
Result<LabProgram> read_program(Storage& storage, const Path& path);

}  // namespace forebay::lab
