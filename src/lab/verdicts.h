/// Gates over what was measured, into the records.
#pragma once

#include "lab/program_file.h"
#include "lab/records.h"

namespace forebay::lab {

/// Judges every gate of every cell that has ended. A verdict that says the same as the one in the records is
/// not written again; one that says something else is written behind a correction.
Result<void> record_verdicts(Storage& storage, const LabProgram& program, const Path& directory,
                             Records& records);

}  // namespace forebay::lab
