// forebay pack: a model's experts in one piece each, for faster reads.
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/model_location.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "experts/expert_pack.h"
#include "gguf/gguf.h"
#include "model/config.h"
#include "model/weights.h"

namespace forebay::cli {
namespace {

/// Whether there is a file whose first bytes say so.
Result<bool> is_gguf(Storage& storage, const std::string& path) {
  if (!storage.exists(path)) return false;
  const std::unique_ptr<ReadableFile> file = TRY(storage.open(path));
  std::array<char, 4> magic{};
  if (file->size() < magic.size()) return false;
  TRY(file->read_at(0, std::as_writable_bytes(std::span(magic))));
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

class PackCommand : public Command {
 public:
  void declare(FlagTable& flags) override {
    flags.text("MODEL", "", model_, "a GGUF file, or any part of a split one; the embedded model if absent");
    flags.text("-o,--output", "FILE", output_, "the pack to write");
    verbosity_.declare(flags);
  }

  Result<void> check() override {
    TRY(verbosity_.check());
    if (output_.empty()) return Error{Code::kInvalidArgument, "-o is missing"};
    return {};
  }

  Result<ExitCode> run(const FlagTable& flags) override {
    const Interrupt interrupt;
    if (model_.empty()) model_ = TRY(embedded_model()).string();
    log_settings(flags);
    const std::unique_ptr<Storage> storage = make_posix_storage();
    const GgufFile file = TRY(GgufFile::open(*storage, model_));
    const bool would_replace = TRY(is_gguf(*storage, output_));
    if (would_replace)
      return Error{
          Code::kInvalidArgument,
          fmt::format("{}: a GGUF file, which a pack would replace; it wants a name of its own", output_)};
    MemoryBudget budget;
    const auto named = [&](Error error) { return std::move(error).in(model_); };
    Result<ModelConfig> config = ModelConfig::from_gguf(file);
    if (!config) return named(std::move(config).error());
    Result<Weights> weights = Weights::load(file, nullptr, *config, budget);
    if (!weights) return named(std::move(weights).error());
    if (weights->experts.empty())
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: a dense model, it has no experts to pack", model_)};

    std::optional<Progress> progress;
    const auto on_progress = [&](uint64_t done, uint64_t total) {
      if (!progress) progress.emplace("pack", total, ProgressOptions{.style = progress_style(verbosity_)});
      progress->set(done);
    };
    TRY(write_expert_pack(*storage, weights->experts, output_, on_progress, interrupt.token()));
    return ExitCode::kDone;
  }

 private:
  std::string model_, output_;
  Verbosity verbosity_;
};

}  // namespace

CommandInfo pack_command() {
  return {
      .name = "pack",
      .summary = "copy a model's experts into a file that is read faster",
      .usage = "[MODEL] -o FILE",
      .examples = {{"forebay pack big.gguf -o big.pack", "then: forebay run -m big.gguf --pack big.pack"}},
      .details =
          "In a GGUF file an expert lies in three places; in a pack it is one piece on page borders, so "
          "that a missing expert is one read. The model file is still needed for everything else. "
          "Changes no result.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PackCommand>()); }};
}

}  // namespace forebay::cli
