/// Runs a program's cells one after the other, watches them, and writes down what happened.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "lab/program_file.h"
#include "lab/records.h"

namespace forebay::lab {

struct RunOptions {
  std::string self;  // what "forebay" in a command means
  std::chrono::milliseconds poll{500};
  std::chrono::milliseconds grace{20000};  // from asking a killed cell to end to ending it
  std::chrono::seconds cost_record{30};    // what a crash can forget of the cost
  /// What a person wants to read while it goes, a line each.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

enum class RunEnd {
  kDone,      // every cell was run (or killed by its triggers)
  kBudget,    // the money is gone
  kFailures,  // some cell's trainer failed
};

/// Registers, then runs the cells that are not complete: records in `directory`/records.jsonl, a cell's files
/// in `directory`/cells/NAME. A cell that was interrupted goes on with --resume; one that was killed by a
/// trigger is complete. Errors: kInvalidArgument when another run holds the directory, or a cell that has
/// been started is registered differently now; kCancelled; those of register_cells, of files.
Result<RunEnd> run_program(Storage& storage, const LabProgram& program, const Path& directory,
                           const RunOptions& options, std::stop_token stop);

/// Device seconds that the records account for.
double cost_of(const Records& records);

}  // namespace forebay::lab
