// forebay inspect: what is in a file, and what running it would take.
#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/json_writer.h"
#include "cli/model_location.h"
#include "cli/model_summary.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "core/storage.h"
#include "gguf/describe.h"
#include "gguf/text.h"

namespace forebay::cli {
namespace {

constexpr int64_t kDefaultContext = 8192;

class InspectCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override { return verbosity_.check(); }
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  int64_t cells(const ModelSummary& summary) const;
  void print_file(const GgufFile& file, const ModelSummary& summary) const;
  void print_metadata(const GgufFile& file) const;
  void print_tensors(const GgufFile& file) const;
  void print_types(const ModelSummary& summary) const;
  void print_experts(const ModelSummary& summary) const;
  void print_memory(const ModelSummary& summary) const;
  std::string as_json(const GgufFile& file, const ModelSummary& summary) const;

  std::string model_;
  int64_t context_ = 0;
  bool json_ = false;
  bool tensors_ = false;
  bool full_ = false;
  Verbosity verbosity_;
};

void InspectCommand::declare(FlagTable& flags) {
  flags.text("MODEL", "", model_, "a GGUF file, or any part of a split one; the embedded model if absent");
  flags.section("Options");
  flags.toggle("--json", json_, "print one JSON object");
  flags.toggle("--tensors", tensors_, "list every tensor");
  flags.toggle("--full", full_, "do not cut long metadata");
  flags.integer("-c,--context", "N", context_, {0, 1 << 24},
                "tokens for which the memory is computed; 0: the model's, at most 8192");
  verbosity_.declare(flags);
}

int64_t InspectCommand::cells(const ModelSummary& summary) const {
  if (context_ > 0) return context_;
  if (summary.context_length == 0) return kDefaultContext;
  return static_cast<int64_t>(std::min<uint64_t>(summary.context_length, kDefaultContext));
}

Result<ExitCode> InspectCommand::run(const FlagTable& flags) {
  if (model_.empty()) model_ = TRY(embedded_model()).string();
  log_settings(flags);
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const GgufFile file = TRY(GgufFile::open(*storage, model_));
  const ModelSummary summary = summarise(file);
  if (json_) {
    fmt::print("{}\n", as_json(file, summary));
    return ExitCode::kDone;
  }
  print_file(file, summary);
  print_metadata(file);
  if (tensors_) print_tensors(file);
  print_types(summary);
  print_experts(summary);
  print_memory(summary);
  return ExitCode::kDone;
}

void InspectCommand::print_file(const GgufFile& file, const ModelSummary& summary) const {
  fmt::print("{}\n", file.path().string());
  fmt::print("  GGUF version {}, {}", file.version(), human_bytes(file.file_bytes()));
  if (file.n_shards() > 1) fmt::print(" in {} files", file.n_shards());
  fmt::print("\n  architecture {}\n",
             summary.architecture.empty() ? "not given" : gguf::quote(summary.architecture));
  if (!summary.name.empty()) fmt::print("  name         {}\n", gguf::quote(summary.name));
}

void InspectCommand::print_metadata(const GgufFile& file) const {
  const auto& entries = file.metadata().entries();
  fmt::print("\nMetadata, {} keys\n", entries.size());
  for (const auto& [key, value] : entries) {
    std::string shown = gguf::value_string(value, full_ ? SIZE_MAX : 8);
    if (full_ && value.type == GgufType::kString)
      shown = gguf::quote(std::get<std::string>(value.data), SIZE_MAX);
    const std::string name = gguf::quote(key);
    fmt::print("  {:<44} {:<14} {}\n", name.substr(1, name.size() - 2), gguf::type_string(value), shown);
  }
}

void InspectCommand::print_tensors(const GgufFile& file) const {
  fmt::print("\nTensors\n  {:<40} {:<8} {:<24} {:>14} {:>16}{}\n", "name", "type", "dimensions", "bytes",
             "offset", file.n_shards() > 1 ? " file" : "");
  for (const TensorInfo& tensor : file.tensors()) {
    const std::string name = gguf::quote(tensor.name);
    fmt::print("  {:<40} {:<8} {:<24} {:>14} {:>16}", name.substr(1, name.size() - 2), name_of(tensor.type),
               shape_string(tensor), grouped_digits(tensor.bytes), grouped_digits(tensor.offset));
    if (file.n_shards() > 1) fmt::print(" {:>4}", tensor.shard + 1);
    fmt::print("\n");
  }
}

void InspectCommand::print_types(const ModelSummary& summary) const {
  fmt::print("\nTensors by type\n  {:<8} {:>8} {:>12} {:>10} {:>8}\n", "type", "tensors", "parameters",
             "bytes", "bits");
  const auto row = [](std::string_view name, const Share& share) {
    const double bits = share.n_weights == 0 ? 0 : 8.0 * share.bytes / static_cast<double>(share.n_weights);
    fmt::print("  {:<8} {:>8} {:>12} {:>10} {:>8.2f}\n", name, share.n_tensors, human_count(share.n_weights),
               human_bytes(share.bytes), bits);
  };
  for (const auto& [type, share] : summary.by_type) row(name_of(type), share);
  row("all", summary.all);
}

std::string_view label_of(TensorUse use) {
  switch (use) {
    case TensorUse::kTrunk:
      return "trunk";
    case TensorUse::kExpert:
      return "experts";
    case TensorUse::kTable:
      return "tables";
    case TensorUse::kDraft:
      return "draft head";
  }
  return "";
}

std::string_view meaning_of(TensorUse use) {
  switch (use) {
    case TensorUse::kTrunk:
      return "read for every token";
    case TensorUse::kExpert:
      return "read when the router chooses them";
    case TensorUse::kTable:
      return "embeddings: a few rows per token";
    case TensorUse::kDraft:
      return "left out unless it is asked for";
  }
  return "";
}

void InspectCommand::print_experts(const ModelSummary& summary) const {
  if (summary.experts.empty()) return;
  fmt::print("\nExperts, {} used per token and block\n  {:<10} {:>8} {:>14} {:>14}\n",
             summary.n_experts_used == 0 ? "an unknown number" : fmt::format("{}", summary.n_experts_used),
             "blocks", "experts", "bytes each", "weights each");
  // Neighbours that are alike share a row.
  for (auto first = summary.experts.begin(); first != summary.experts.end();) {
    auto last = first;
    const auto alike = [&](const BlockExperts& other) {
      return other.n_experts == first->second.n_experts &&
             other.bytes_per_expert == first->second.bytes_per_expert &&
             other.weights_per_expert == first->second.weights_per_expert;
    };
    auto next = std::next(first);
    for (; next != summary.experts.end() && alike(next->second); ++next) last = next;
    fmt::print(
        "  {:<10} {:>8} {:>14} {:>14}\n",
        first == last ? fmt::format("{}", first->first) : fmt::format("{}-{}", first->first, last->first),
        first->second.n_experts, grouped_digits(first->second.bytes_per_expert),
        grouped_digits(first->second.weights_per_expert));
    first = next;
  }
}

void InspectCommand::print_memory(const ModelSummary& summary) const {
  fmt::print("\nParameters   {} in all, {} multiplied per token\n", human_count(summary.all.n_weights),
             human_count(summary.n_active));
  fmt::print("\nMemory\n");
  const auto line = [](std::string_view label, uint64_t bytes, std::string_view meaning) {
    fmt::print("  {:<12} {:>10}   {}\n", label, human_bytes(bytes), meaning);
  };
  for (const auto& [use, share] : summary.by_use) {
    if (share.n_tensors == 0) continue;
    line(label_of(use), share.bytes, meaning_of(use));
    if (use == TensorUse::kExpert) line("", summary.active_expert_bytes, "of them one token reads");
  }
  if (!summary.state) {
    fmt::print("  {:<12} {:>10}   {}\n", "state", "unknown", gguf::quote(summary.state_unknown, 400));
    return;
  }
  const auto n_cells = static_cast<uint64_t>(cells(summary));
  fmt::print("  {:<12} {:>10}   for {} tokens: {} bytes fixed and {} bytes per token, keys and values {}\n",
             "state", human_bytes(summary.state->fixed_bytes + n_cells * summary.state->bytes_per_cell),
             n_cells, grouped_digits(summary.state->fixed_bytes),
             grouped_digits(summary.state->bytes_per_cell), name_of(summary.kv));
  fmt::print("Weights are mapped: pages become resident when they are read, and the system may drop them.\n");
}

std::string InspectCommand::as_json(const GgufFile& file, const ModelSummary& summary) const {
  constexpr size_t kMaxItems = 64;
  JsonWriter json;
  const auto share = [&](const Share& s) {
    json.begin_object();
    json.key("tensors").integer(s.n_tensors).key("parameters").integer(s.n_weights);
    json.key("bytes").integer(s.bytes).end_object();
  };
  json.begin_object();
  json.key("path").string(file.path().string());
  json.key("version").integer(uint64_t{file.version()});
  json.key("file_bytes").integer(file.file_bytes());
  json.key("files").integer(file.n_shards());
  json.key("architecture").string(summary.architecture);
  json.key("name").string(summary.name);
  json.key("context_length").integer(summary.context_length);

  json.key("parameters").begin_object();
  json.key("all").integer(summary.all.n_weights);
  json.key("active_per_token").integer(summary.n_active);
  for (const auto& [use, s] : summary.by_use) json.key(label_of(use)).integer(s.n_weights);
  json.end_object();
  json.key("tensors_by_type").begin_object();
  for (const auto& [type, s] : summary.by_type) {
    json.key(name_of(type));
    share(s);
  }
  json.end_object();
  json.key("tensors_by_use").begin_object();
  for (const auto& [use, s] : summary.by_use) {
    json.key(label_of(use));
    share(s);
  }
  json.end_object();

  json.key("experts").begin_object();
  json.key("used").integer(summary.n_experts_used);
  json.key("bytes_per_token").integer(summary.active_expert_bytes);
  json.key("blocks").begin_array();
  for (const auto& [block, e] : summary.experts) {
    json.begin_object();
    json.key("block").integer(block).key("experts").integer(e.n_experts);
    json.key("bytes_per_expert").integer(e.bytes_per_expert);
    json.key("parameters_per_expert").integer(e.weights_per_expert).end_object();
  }
  json.end_array().end_object();

  const auto state = [&](const std::optional<StateSize>& size) {
    if (!size) {
      json.null();
      return;
    }
    json.begin_object();
    json.key("fixed_bytes").integer(size->fixed_bytes).key("bytes_per_cell").integer(size->bytes_per_cell);
    json.key("bytes").integer(size->fixed_bytes +
                              static_cast<uint64_t>(cells(summary)) * size->bytes_per_cell);
    json.end_object();
  };
  json.key("state").begin_object();
  json.key("context").integer(cells(summary)).key("kv").string(name_of(summary.kv));
  json.key("trunk");
  state(summary.state);
  json.key("with_draft_head");
  state(summary.state_with_draft);
  if (!summary.state) json.key("unknown").string(summary.state_unknown);
  json.end_object();

  json.key("metadata").begin_object();
  for (const auto& [key, value] : file.metadata().entries())
    json.key(key)
        .begin_object()
        .key("type")
        .string(gguf::type_string(value))
        .key("value")
        .raw(gguf::value_json(value, full_ ? SIZE_MAX : kMaxItems))
        .end_object();
  json.end_object();

  if (tensors_) {
    json.key("tensors").begin_array();
    for (const TensorInfo& tensor : file.tensors()) {
      json.begin_object();
      json.key("name").string(tensor.name).key("type").string(name_of(tensor.type));
      json.key("dimensions").begin_array();
      for (int d = 0; d < tensor.n_dims; ++d) json.integer(tensor.ne[d]);
      json.end_array();
      json.key("bytes").integer(tensor.bytes).key("offset").integer(tensor.offset);
      json.key("file").integer(tensor.shard).end_object();
    }
    json.end_array();
  }
  json.end_object();
  return json.text();
}

}  // namespace

CommandInfo inspect_command() {
  return {.name = "inspect",
          .summary = "show what a model file holds and what it needs",
          .usage = "[options] [MODEL]",
          .examples = {{"forebay inspect model.gguf", "metadata, types, experts, memory"},
                       {"forebay inspect model.gguf --tensors", "every tensor too"},
                       {"forebay inspect model.gguf --json | jq .parameters", "for programs"}},
          .details = "Describes any valid GGUF file, also of models that this version does not run.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<InspectCommand>()); }};
}

}  // namespace forebay::cli
