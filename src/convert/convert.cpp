/// From a checkpoint directory to GGUF files: reads the config, plans every tensor, then writes.
#include "convert/convert.h"

#include <algorithm>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "convert/checkpoint.h"
#include "convert/checkpoint_config.h"
#include "convert/metadata.h"
#include "convert/ngram_hash.h"
#include "convert/tensor_plan.h"
#include "convert/tensor_writer.h"
#include "convert/tokenizer_metadata.h"
#include "core/interrupt.h"
#include "gguf/gguf.h"

namespace forebay {
namespace {

using namespace convert;

/// One GGUF file to write.
struct PlannedFile {
  Path path;
  GgufMetadata metadata;
  std::vector<OutputTensor> tensors;
  std::vector<DType> types;  // one per tensor
};

uint64_t bytes_of_tensor(const OutputTensor& tensor, DType type) {
  return tensor.source.n_rows() *
         static_cast<uint64_t>(row_bytes(type, static_cast<int64_t>(tensor.source.n_columns())));
}

/// The number that general.file_type has for a default type; nothing for types without one.
std::optional<uint32_t> file_type(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kQ2_K:
      return 10;
    case DType::kQ4_K:
      return 15;
    case DType::kQ5_K:
      return 17;
    case DType::kQ6_K:
      return 18;
    case DType::kIQ4_NL:
      return 25;
    case DType::kBF16:
      return 32;
    case DType::kMXFP4:
      return 38;
    default:
      return std::nullopt;
  }
}

/// Everything that happens before the first byte is written. Must outlive the files it planned.
class Planner {
 public:
  Planner(Storage& storage, const Path& directory, const Path& output, const ConvertOptions& options)
      : storage_(storage),
        directory_(directory),
        output_(output),
        options_(options),
        chooser_(options.types) {}

  Result<std::vector<PlannedFile>> plan(ConvertReport& report) {
    const JsonObject json = TRY(JsonObject::read(storage_, directory_ / "config.json"));
    const CheckpointConfig config = TRY(read_checkpoint_config(json));
    if (Result<void> planned = plan_tensors(config, report); !planned) {
      Error error = std::move(planned).error();
      if (!error.message.starts_with(directory_.string())) error = std::move(error).in(directory_.string());
      return error;
    }
    report.architecture = config.architecture;

    TRY(choose_types(report));
    GgufMetadata text;
    TRY(add_text_metadata(storage_, directory_, config, text, report.notes));
    for (PlannedFile& file : files_) add_general_metadata(file, text);
    for (std::string& note : chooser_.notes()) report.notes.push_back(std::move(note));
    return std::move(files_);
  }

 private:
  Result<void> plan_tensors(const CheckpointConfig& config, ConvertReport& report) {
    checkpoint_ = std::make_unique<Checkpoint>(TRY(Checkpoint::open(storage_, directory_, config)));
    const bool has_head = checkpoint_->has_any("mtp.");
    const MtpMode mtp = has_head ? options_.mtp : MtpMode::kNone;
    if (!has_head && options_.mtp == MtpMode::kSeparate)
      report.notes.push_back("no draft head (mtp.*) in the checkpoint: no second file");
    if (has_head && !config.is_hybrid())
      return Error{Code::kUnsupported,
                   fmt::format("a draft head (mtp.*) on {}, wanted none", config.architecture)};

    NgramHash hash;
    if (config.ngram.block >= 0) hash = TRY(read_ngram_hash(*checkpoint_, config));
    TensorPlan trunk(config, *checkpoint_), head(config, *checkpoint_);
    TRY(trunk.trunk());
    if (mtp == MtpMode::kMerged) TRY(trunk.draft_head());
    if (mtp == MtpMode::kSeparate) TRY(head.draft_head());
    TRY(check_unused(report));

    const bool merged = mtp == MtpMode::kMerged;
    files_.push_back({output_,
                      model_metadata(config, hash, merged ? HeadBlock::kIncluded : HeadBlock::kAbsent),
                      std::move(trunk.tensors()),
                      {}});
    if (mtp == MtpMode::kSeparate)
      files_.push_back({output_.parent_path() / ("mtp-" + output_.filename().string()),
                        model_metadata(config, hash, HeadBlock::kAlone),
                        std::move(head.tensors()),
                        {}});
    return {};
  }

  /// Tensors that nobody took: parts that belong elsewhere get a note, others are an error.
  Result<void> check_unused(ConvertReport& report) const {
    struct LeftOut {
      const char* what;
      std::vector<std::string_view> prefixes, suffixes;
      int n = 0;
    };
    LeftOut kinds[] = {
        {"of the vision part", {"visual.", "vision_tower.", "multi_modal_projector."}, {}},
        {"of the draft head", {"mtp."}, {}},
        {"of a tied output head", {"lm_head.weight"}, {}},
        {"of rope frequencies, which follow from the config", {}, {".rotary_emb.inv_freq"}},
    };
    for (const std::string& name : checkpoint_->unused()) {
      const auto kind = std::ranges::find_if(kinds, [&](const LeftOut& left_out) {
        return std::ranges::any_of(left_out.prefixes,
                                   [&](auto prefix) { return name.starts_with(prefix); }) ||
               std::ranges::any_of(left_out.suffixes, [&](auto suffix) { return name.ends_with(suffix); });
      });
      const bool is_planned_head = name.starts_with("mtp.") && options_.mtp != MtpMode::kNone;
      if (kind == std::end(kinds) || is_planned_head)
        return Error{Code::kUnsupported,
                     fmt::format("tensor {} has no place in the model", checkpoint_->full_name(name))};
      ++kind->n;
    }
    for (const LeftOut& kind : kinds)
      if (kind.n > 0)
        report.notes.push_back(
            fmt::format("left out: {} {} {}", kind.n, kind.n == 1 ? "tensor" : "tensors", kind.what));
    return {};
  }

  Result<void> choose_types(ConvertReport& report) {
    for (PlannedFile& file : files_) {
      ConvertReport::Output output{file.path};
      for (const OutputTensor& tensor : file.tensors) {
        const DType type = chooser_.choose(tensor.name, tensor.role, tensor.ne[0], tensor.source.is_f16());
        const uint64_t bytes = bytes_of_tensor(tensor, type);
        file.types.push_back(type);
        ++output.n_tensors;
        output.tensor_bytes += bytes;
        ConvertReport::TypeShare& share = report.by_type[type];
        ++share.n_tensors;
        share.bytes += bytes;
        report.n_parameters += tensor.source.n_rows() * tensor.source.n_columns();
      }
      report.outputs.push_back(std::move(output));
    }
    return chooser_.check_all_matched();
  }

  void add_general_metadata(PlannedFile& file, const GgufMetadata& text) const {
    std::string name = options_.name;
    std::error_code ignored;  // then the path stays as it is
    if (name.empty())
      name = std::filesystem::absolute(directory_ / "", ignored)
                 .lexically_normal()
                 .parent_path()
                 .filename()
                 .string();
    file.metadata.set("general.name", GgufValue::string(name));
    if (const auto type = file_type(options_.types.default_type))
      file.metadata.set("general.file_type", GgufValue::u32(*type));
    file.metadata.set("general.quantization_version", GgufValue::u32(2));
    for (const auto& [key, value] : text.entries()) file.metadata.set(key, value);
    for (const auto& [key, value] : options_.metadata.entries()) file.metadata.set(key, value);
  }

  Storage& storage_;
  const Path directory_, output_;
  const ConvertOptions& options_;
  TypeChooser chooser_;
  std::vector<PlannedFile> files_;
  std::unique_ptr<Checkpoint> checkpoint_;  // the planned rows point into it
};

/// Writes all files, and gives them their names only when the last is complete.
class FilesWriter {
 public:
  FilesWriter(Storage& storage, ThreadPool& pool, FunctionRef<void(const ConvertProgress&)> progress,
              const std::stop_token& stop)
      : storage_(storage), pool_(pool), progress_(progress), stop_(stop) {}

  Result<void> write(const std::vector<PlannedFile>& files) {
    for (const PlannedFile& file : files)
      for (size_t i = 0; i < file.tensors.size(); ++i) {
        ++state_.n_tensors;
        state_.n_bytes += bytes_of_tensor(file.tensors[i], file.types[i]);
      }
    std::vector<GgufWriter> writers;
    for (const PlannedFile& file : files) writers.push_back(TRY(write_file(file)));

    for (size_t i = 0; i < files.size(); ++i) {
      Result<void> finished = check_stop(stop_);
      if (finished) finished = writers[i].finish();
      if (finished) continue;
      for (size_t done = 0; done < i; ++done) (void)storage_.remove(files[done].path);
      return finished;
    }
    return {};
  }

 private:
  Result<GgufWriter> write_file(const PlannedFile& file) {
    GgufWriter writer = TRY(GgufWriter::create(storage_, file.path));
    for (const auto& [key, value] : file.metadata.entries()) writer.set(key, value);
    for (size_t i = 0; i < file.tensors.size(); ++i)
      TRY(writer.declare(file.tensors[i].name, file.types[i], file.tensors[i].ne));
    TRY(writer.write_headers());
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      state_.tensor = file.tensors[i].name;
      const auto wrote = [&](uint64_t bytes) {
        state_.bytes_done += bytes;
        progress_(state_);
      };
      TRY(write_tensor(writer, file.tensors[i], file.types[i], pool_, wrote, stop_));
      ++state_.tensors_done;
      progress_(state_);
    }
    return writer;
  }

  Storage& storage_;
  ThreadPool& pool_;
  FunctionRef<void(const ConvertProgress&)> progress_;
  const std::stop_token& stop_;
  ConvertProgress state_{};
};

}  // namespace

Result<ConvertReport> convert_checkpoint(Storage& storage, const Path& directory, const Path& output,
                                         const ConvertOptions& options, ThreadPool& pool,
                                         FunctionRef<void(const ConvertProgress&)> progress,
                                         std::stop_token stop) {
  try {
    ConvertReport report;
    Planner planner(storage, directory, output, options);
    const std::vector<PlannedFile> files = TRY(planner.plan(report));
    if (!options.dry_run) TRY(FilesWriter(storage, pool, progress, stop).write(files));
    return report;
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("{}: no memory left to convert", directory.string())};
  }
}

}  // namespace forebay
