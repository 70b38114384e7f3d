/// The commands of forebay-train, one per file.
#pragma once

#include "cli/command.h"

namespace forebay::train {

cli::CommandInfo pretrain_command();
cli::CommandInfo sft_command();
cli::CommandInfo grpo_command();
cli::CommandInfo monitor_command();
cli::CommandInfo ledger_command();
cli::CommandInfo delta_command();

}  // namespace forebay::train
