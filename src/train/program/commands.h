/// The commands of forebay-train, one per file.
#pragma once

#include "cli/command.h"

namespace forebay::train {

cli::CommandInfo pretrain_command();
cli::CommandInfo sft_command();

}  // namespace forebay::train
