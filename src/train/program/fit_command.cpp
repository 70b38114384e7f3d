#include "train/program/fit_command.h"

#include <cmath>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "core/interrupt.h"
#include "core/log.h"
#include "recipe/recipe.h"
#include "train/fit/settings.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

/// The tokenizer's own place, or the one of the model that is named.
std::string tokenizer_of(const FitSettings& settings) {
  if (!settings.tokenizer.empty()) return settings.tokenizer;
  return settings.from.empty() ? settings.like : settings.from;
}

Result<FitData> read_data(Storage& storage, const FitSettings& settings, Learn learn, int n_vocab) {
  const std::string place = tokenizer_of(settings);
  if (place.empty())
    return Error{Code::kInvalidArgument,
                 "model.tokenizer is empty: wanted a GGUF file or a directory with tokenizer.json"};
  if (settings.train.empty())
    return Error{Code::kInvalidArgument, "data.train is empty: wanted files or directories to learn from"};
  const TextReader reader = TRY(TextReader::open(storage, place));
  if (reader.tokenizer->n_tokens() > n_vocab)
    return Error{Code::kInvalidArgument, fmt::format("{}: {} tokens, the model has {}", place,
                                                     reader.tokenizer->n_tokens(), n_vocab)};
  ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  FitData data;
  data.train = TRY(read_documents(storage, settings.train, reader, learn, pool));
  if (!settings.validation.empty())
    data.validation = TRY(read_documents(storage, settings.validation, reader, learn, pool));
  const auto end = reader.tokenizer->find_special("<|endoftext|>");
  data.padding = end ? *end : reader.tokenizer->eos().value_or(0);
  return data;
}

}  // namespace

void FitCommand::declare(cli::FlagTable& flags) {
  flags.text("--recipe", "FILE", recipe_, "settings of the run (docs/training.md)");
  flags.texts("--set", "KEY=VALUE", settings_, "change one of them, as fit.lr=1e-4");
  flags.text("-o,--out", "DIR", out_, "where metrics.jsonl, states and the model go");
  flags.toggle("--resume", resume_, "go on from the last state in DIR");
  flags.integer("--stop-after", "N", stop_after_, {.min = 0},
                "end after step N with a state to resume from, as Ctrl-C does; 0: at the end");
}

Result<cli::ExitCode> FitCommand::run(const cli::FlagTable& /*flags*/) {
  if (recipe_.empty()) return Error{Code::kInvalidArgument, "--recipe is missing: wanted a recipe file"};
  if (out_.empty()) return Error{Code::kInvalidArgument, "--out is missing: wanted a directory for the run"};
  const Interrupt interrupt;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  Recipe recipe = TRY(Recipe::read(*storage, recipe_, settings_));
  FitSettings settings = read_fit_settings(recipe);
  TRY(recipe.finish());
  settings.fit.stop_after = stop_after_;
  if (learn_ == Learn::kAssistant && settings.fit.packing == Packing::kStream)
    log::info("fit.packing is stream: conversations are cut where rows end");
  if (settings.threads > 0) torch::set_num_threads(static_cast<int>(settings.threads));

  const std::shared_ptr<Net> net = TRY(make_model(*storage, settings));
  const FitData data = TRY(read_data(*storage, settings, learn_, net->config().n_vocab));
  const FitPlace place{*storage, out_, recipe.resolved(), resume_, ProgressStyle::kAuto};
  const FitReport report = TRY(fit(*net, data, settings.fit, place, interrupt.token()));
  if (!report.note.empty()) log::warn("{}", report.note);
  std::printf("%s\n", fmt::format("{} of {} steps, loss {:.4f}{}", report.steps_done,
                                  settings.fit.schedule.steps, report.last_loss,
                                  std::isnan(report.validation_loss)
                                      ? ""
                                      : fmt::format(", validation {:.4f}", report.validation_loss))
                          .c_str());
  if (report.was_stopped) {
    std::printf("stopped: go on with --resume\n");
    return interrupt.requested() ? cli::ExitCode::kInterrupted : cli::ExitCode::kDone;
  }
  const SavedType type = settings.save_bf16 ? SavedType::kBF16 : SavedType::kF32;
  TRY(save_net(*storage, Path(out_) / "model", *net, type));
  TRY(write_gguf(*storage, Path(out_) / "model.gguf", *net, tokenizer_of(settings), type));
  std::printf("%s\n", (Path(out_) / "model.gguf").c_str());
  return cli::ExitCode::kDone;
}

}  // namespace forebay::train
