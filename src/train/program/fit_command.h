/// What `train pretrain` and `train sft` share: everything but which tokens are learnt.
#pragma once

#include "cli/command.h"
#include "train/fit/documents.h"

namespace forebay::train {

class FitCommand : public cli::Command {
 public:
  explicit FitCommand(Learn learn) : learn_(learn) {}
  void declare(cli::FlagTable& flags) override;
  Result<cli::ExitCode> run(const cli::FlagTable& flags) override;

 private:
  const Learn learn_;
  std::string recipe_, out_;
  std::vector<std::string> settings_;
  bool resume_ = false;
  int64_t stop_after_ = 0;
};

}  // namespace forebay::train
