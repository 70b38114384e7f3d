// forebay logits: every position's logits, for comparison with other engines.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "forebay/engine.h"

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/ids.h"
#include "cli/verbosity.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "model/model.h"
#include "safetensors/safetensors.h"
#include "tensor/buffer.h"

namespace forebay::cli {
namespace {

/// T rows of V logits, filled from the top.
class LogitTable {
 public:
  static Result<LogitTable> create(MemoryBudget& budget, std::string name, size_t n_rows, size_t n_vocab) {
    Buffer buffer = TRY(Buffer::allocate(budget, n_rows * n_vocab * sizeof(float), name));
    return LogitTable(std::move(name), std::move(buffer), n_rows, n_vocab);
  }

  void append(TensorView<const float> rows) {
    for (int64_t r = 0; r < rows.rows; ++r)
      std::memcpy(buffer_.as<float>().data() + n_filled_++ * n_vocab_, rows.row(r), n_vocab_ * sizeof(float));
  }
  SafeTensorData tensor() const {
    return {.name = name_,
            .type = SafeType::kF32,
            .shape = {n_rows_, n_vocab_},
            .bytes = buffer_.as<const std::byte>()};
  }

 private:
  LogitTable(std::string name, Buffer buffer, size_t n_rows, size_t n_vocab)
      : name_(std::move(name)), buffer_(std::move(buffer)), n_rows_(n_rows), n_vocab_(n_vocab) {}

  std::string name_;
  Buffer buffer_;
  size_t n_rows_, n_vocab_;
  size_t n_filled_ = 0;
};

class LogitsCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  EngineFlags engine_;
  Verbosity verbosity_;
  std::string ids_;
  std::string mtp_model_;
  std::string output_;
  bool mtp_ = false;
};

void LogitsCommand::declare(FlagTable& flags) {
  flags.section("Input and output");
  engine_.declare_model(flags);
  flags.text("--ids", "FILE|LIST", ids_,
             "token ids: 1,2,3 or a file with such a list or JSON; - is standard input");
  flags.text("-o,--output", "FILE", output_, "the safetensors file to write");
  flags.toggle("--mtp", mtp_,
               "also write mtp_logits [T - 1, V]: what the draft head says of the token after next");
  flags.text("--mtp-model", "FILE", mtp_model_, "a draft head in a file of its own, for --mtp");
  flags.section("Speed and memory");
  engine_.declare_speed(flags);
  engine_.declare_experts(flags);
  engine_.declare_kernels(flags);
  verbosity_.declare(flags);
}

Result<void> LogitsCommand::check() {
  TRY(verbosity_.check());
  if (ids_.empty()) return Error{Code::kInvalidArgument, "--ids is missing"};
  if (output_.empty()) return Error{Code::kInvalidArgument, "-o is missing"};
  if (!mtp_model_.empty() && !mtp_) return Error{Code::kInvalidArgument, "--mtp-model needs --mtp"};
  return {};
}

Result<ExitCode> LogitsCommand::run(const FlagTable& flags) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const std::vector<int32_t> ids = TRY(read_ids(*storage, ids_));
  if (ids.empty()) return Error{Code::kInvalidArgument, "--ids: an empty list"};
  if (mtp_ && ids.size() < 2)
    return Error{Code::kInvalidArgument, "--mtp: needs two tokens or more, --ids has one"};

  const Interrupt interrupt;
  engine_.context = static_cast<int64_t>(ids.size());
  EngineOptions options = TRY(engine_.resolve());
  options.load_mtp = mtp_;
  options.mtp_model = mtp_model_;
  Engine engine = TRY(Engine::open(options));
  engine_.adopt(engine.info());
  log_settings(flags);
  Model& model = engine.model();
  if (mtp_ && !model.has_mtp())
    return Error{Code::kUnsupported, fmt::format("{}: no draft head for --mtp", engine.info().path)};

  const auto n_vocab = static_cast<size_t>(engine.info().n_vocab);
  LogitTable logits = TRY(LogitTable::create(engine.budget(), "logits", ids.size(), n_vocab));
  LogitTable drafts =
      TRY(LogitTable::create(engine.budget(), "mtp_logits", mtp_ ? ids.size() - 1 : 0, n_vocab));
  SequenceState state = TRY(model.new_state(engine.info().context));
  Progress progress("logits", ids.size(),
                    {.style = progress_style(verbosity_), .unit = ProgressUnit::kItems});

  for (size_t done = 0; done < ids.size();) {
    TRY(check_stop(interrupt.token()));
    const size_t n = std::min<size_t>(model.max_window(), ids.size() - done);
    const Span window{&state, std::span(ids).subspan(done, n), LogitRows::kAll};
    const ForwardOutput output = TRY(model.forward({&window, 1}));
    logits.append(output.logits);
    // The last token has no next one to draft from.
    const size_t n_drafts = std::min(n, ids.size() - 1 - done);
    if (mtp_ && n_drafts > 0) {
      const auto hidden = output.hidden.slice_rows(0, static_cast<int64_t>(n_drafts));
      drafts.append(
          TRY(model.draft(state, hidden, std::span(ids).subspan(done + 1, n_drafts), LogitRows::kAll))
              .logits);
    }
    done += n;
    progress.set(done);
  }
  progress.finish();
  TRY(engine.finish_trace());

  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  for (const Setting& setting : flags.settings()) metadata["forebay." + setting.name] = setting.value;
  std::vector<SafeTensorData> tensors = {logits.tensor()};
  if (mtp_) tensors.push_back(drafts.tensor());
  TRY(write_safetensors(*storage, output_, tensors, metadata));
  return ExitCode::kDone;
}

}  // namespace

CommandInfo logits_command() {
  return {.name = "logits",
          .summary = "write the logits of every position of a text",
          .usage = "-m MODEL --ids FILE|LIST -o OUT.safetensors [options]",
          .examples = {{"forebay logits -m model.gguf --ids 9707,11,1879 -o out.safetensors",
                        "f32 logits [T, V]"},
                       {"forebay tokenize --json - < text | forebay logits --ids - -o out.safetensors", ""}},
          .details =
              "Runs the tokens through the model and writes the logits after each of them: row t is what "
              "the model expects after token t. For anyone who wants to compare engines.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<LogitsCommand>()); }};
}

}  // namespace forebay::cli
