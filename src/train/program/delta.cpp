// forebay train delta: what changed between checkpoints, as small files.
#include <fmt/format.h>

#include "cli/json_writer.h"
#include "core/format.h"
#include "train/anchor/delta_files.h"
#include "train/program/commands.h"

namespace forebay::train {
namespace {

using cli::ExitCode;

class DeltaCommand : public cli::Command {
 public:
  void declare(cli::FlagTable& flags) override {
    flags.many("ACTION", "", words_,
               "make BASE CHECKPOINT -o FILE, apply BASE DELTA... -o CHECKPOINT, show DELTA");
    flags.text("-o,--output", "FILE", output_, "with make and apply: the file to write");
    flags.integer("--base-step", "N", base_step_, {0, int64_t{1} << 62},
                  "the base's step, where its metadata has none; 0 if neither says");
    flags.integer("--step", "N", step_, {1, int64_t{1} << 62},
                  "with make: the checkpoint's step, where its metadata has none");
    flags.toggle("--json", json_, "print one JSON object");
  }
  Result<void> check() override {
    const auto refuse = [](std::string text) { return Error{Code::kInvalidArgument, std::move(text)}; };
    if (words_.empty()) return refuse("no action: make, apply or show");
    const std::string& action = words_[0];
    if (action != "make" && action != "apply" && action != "show")
      return refuse(fmt::format("'{}': expected make, apply or show", action));
    if (action == "make" && words_.size() != 3) return refuse("make takes a base and a checkpoint");
    if (action == "apply" && words_.size() < 3) return refuse("apply takes a base and one or more deltas");
    if (action == "show" && words_.size() != 2) return refuse("show takes one delta");
    if ((action == "show") != output_.empty())
      return refuse(action == "show" ? "-o is for make and apply" : action + " needs -o");
    return {};
  }
  Result<ExitCode> run(const cli::FlagTable&) override {
    if (words_[0] == "make") return make();
    return words_[0] == "apply" ? apply() : show(words_[1]);
  }

 private:
  /// What the checkpoint says, else the flag, else 0.
  Result<uint64_t> step_in(const Path& checkpoint, const std::optional<int64_t>& flag) {
    const std::optional<uint64_t> said = TRY(step_of(*storage_, checkpoint));
    if (said && flag && *said != static_cast<uint64_t>(*flag))
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: is of step {}, not {}", checkpoint.string(), *said, *flag)};
    return said ? *said : static_cast<uint64_t>(flag.value_or(0));
  }
  Result<Delta> read_delta(const Path& path) {
    std::vector<std::byte> bytes = TRY(read_file(*storage_, path, uint64_t{1} << 38));
    return parse_delta(std::move(bytes), path.string());
  }
  Result<ExitCode> make();
  Result<ExitCode> apply();
  Result<ExitCode> show(const Path& path);

  std::vector<std::string> words_;
  std::string output_;
  std::optional<int64_t> base_step_, step_;
  bool json_ = false;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

Result<ExitCode> DeltaCommand::make() {
  const uint64_t from = TRY(step_in(words_[1], base_step_)), to = TRY(step_in(words_[2], step_));
  const Bf16Tensors base = TRY(read_bf16(*storage_, words_[1]));
  const Bf16Tensors target = TRY(read_bf16(*storage_, words_[2]));
  const std::vector<std::byte> bytes = TRY(make_delta(base, target, from, to));
  AtomicFile file = TRY(AtomicFile::create(*storage_, output_));
  TRY(file.file().append(bytes));
  TRY(file.commit());
  return show(output_);
}

Result<ExitCode> DeltaCommand::apply() {
  uint64_t step = TRY(step_in(words_[1], base_step_));
  Bf16Tensors tensors = TRY(read_bf16(*storage_, words_[1]));
  for (size_t i = 2; i < words_.size(); ++i) {
    const Delta delta = TRY(read_delta(words_[i]));
    if (Result<void> applied = apply_delta(delta, step, tensors); !applied)
      return std::move(applied).error().in(words_[i]);
    step = delta.step;
  }
  TRY(write_with(*storage_, words_[1], tensors, step, output_));
  if (json_)
    fmt::print("{{\"step\":{}}}\n", step);
  else
    fmt::print("{}: step {}\n", output_, step);
  return ExitCode::kDone;
}

Result<ExitCode> DeltaCommand::show(const Path& path) {
  const Delta delta = TRY(read_delta(path));
  const double dense = 2.0 * static_cast<double>(delta.n_elements());
  const double share =
      static_cast<double>(delta.n_changed()) / static_cast<double>(std::max<uint64_t>(1, delta.n_elements()));
  if (json_) {
    cli::JsonWriter json;
    json.begin_object();
    json.key("base_step").integer(delta.base_step).key("step").integer(delta.step);
    json.key("base_sha256").string(to_hex(delta.base_hash)).key("sha256").string(to_hex(delta.target_hash));
    json.key("elements").integer(delta.n_elements()).key("changed").integer(delta.n_changed());
    json.key("bytes").integer(static_cast<uint64_t>(delta.file.size())).key("dense_bytes").number(dense);
    json.key("tensors").begin_array();
    for (const DeltaTensor& tensor : delta.tensors) {
      json.begin_object();
      json.key("name").string(tensor.name);
      json.key("encoding").string(tensor.encoding == DeltaEncoding::kPairs ? "pairs" : "bitmap");
      json.key("elements").integer(tensor.n_elements).key("changed").integer(tensor.n_changed);
      json.key("bytes").integer(tensor.bytes);
      json.end_object();
    }
    json.end_array().end_object();
    fmt::print("{}\n", json.text());
    return ExitCode::kDone;
  }
  fmt::print("{}: step {} -> {}, {} of {} weights changed ({:.2f} %), {} ({:.2f} x smaller than bf16)\n",
             path.string(), delta.base_step, delta.step, human_count(delta.n_changed()),
             human_count(delta.n_elements()), 100 * share, human_bytes(delta.file.size()),
             dense / static_cast<double>(delta.file.size()));
  return ExitCode::kDone;
}

}  // namespace

cli::CommandInfo delta_command() {
  return {
      .name = "delta",
      .summary = "checkpoints as what changed since another",
      .usage = "make|apply|show ... [options]",
      .examples = {{"forebay train delta make base run/step-120 -o 120.delta", "what bf16 sees as changed"},
                   {"forebay train delta apply base 120.delta -o again.safetensors",
                    "the same weights again"},
                   {"forebay train delta show 120.delta", "what is in it"}},
      .details =
          "Values, not differences, with hashes of base and result: a chain of deltas ends at exactly "
          "the bits that it promises, or with an error. docs/formats/delta.md has the format.",
      .make = [] { return std::unique_ptr<cli::Command>(std::make_unique<DeltaCommand>()); }};
}

}  // namespace forebay::train
