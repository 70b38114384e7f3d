#include <cmath>
#include <new>

#include <fmt/format.h>

#include "convert/metadata.h"
#include "convert/ngram_hash.h"
#include "core/ensure.h"
#include "synth/synth.h"
#include "synth/text_metadata.h"
#include "synth/vocabulary.h"

namespace forebay {
namespace {

using namespace synth;

/// A storage that keeps nothing but the length: how long a file's header is, its writer knows best.
class LengthStorage : public Storage {
 public:
  uint64_t length = 0;

  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    return Error{Code::kUnsupported, path.string() + ": only its length is known"};
  }
  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    return std::unique_ptr<WritableFile>(std::make_unique<File>(path, length));
  }
  Result<void> rename(const Path&, const Path&) override { return {}; }
  Result<void> remove(const Path&) override { return {}; }
  bool exists(const Path&) override { return false; }

 private:
  class File : public WritableFile {
   public:
    File(Path path, uint64_t& length) : path_(std::move(path)), length_(length) {}
    const Path& path() const override { return path_; }
    uint64_t position() const override { return length_; }
    Result<void> append(std::span<const std::byte> bytes) override {
      length_ += bytes.size();
      return {};
    }
    Result<void> write_at(uint64_t, std::span<const std::byte>) override { return {}; }
    Result<void> sync() override { return {}; }
    Result<void> close() override { return {}; }

   private:
    const Path path_;
    uint64_t& length_;
  };
};

Result<uint64_t> header_bytes(const SynthPlan& plan) {
  LengthStorage storage;
  GgufWriter writer = TRY(GgufWriter::create(storage, "header"));
  for (const auto& [key, value] : plan.metadata.entries()) writer.set(key, value);
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    TRY(writer.declare(plan.tensors[i].name, plan.types[i], plan.tensors[i].ne));
  TRY(writer.write_headers());
  return storage.length;
}

Result<void> check(const RoutingStatistics& routing) {
  if (!(routing.skew >= 0 && routing.skew <= 10))
    return Error{Code::kInvalidArgument, fmt::format("skew: {}, wanted 0 to 10", routing.skew)};
  if (!(routing.locality >= 0 && routing.locality <= 0.95))
    return Error{Code::kInvalidArgument, fmt::format("locality: {}, wanted 0 to 0.95", routing.locality)};
  return {};
}

Result<SynthPlan> plan(const SynthOptions& options) {
  TRY(check(options.routing));
  Geometry geometry = options.geometry;
  convert::CheckpointConfig& c = geometry.config;
  Vocabulary vocabulary = TRY(make_vocabulary(c.family, c.n_vocab));
  convert::NgramHash hash;
  if (c.ngram.block >= 0) {
    c.ngram.eos = static_cast<uint64_t>(*vocabulary.pad);
    hash = convert::make_ngram_hash(c.ngram, c.n_vocab);
  }

  SynthPlan plan;
  plan.seed = options.seed;
  plan.tensors = list_tensors(geometry, options.routing);
  TypeChooser chooser(options.types);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const SynthTensor& tensor = plan.tensors[i];
    const DType type = chooser.choose(tensor.name, tensor.role, tensor.n_columns(), false);
    ENSURE(type == DType::kF32 || std::holds_alternative<Normal>(tensor.weights),
           "computed weights are structure, which is F32");
    plan.types.push_back(type);
    const uint64_t bytes = plan.tensor_size(i);
    SynthPlan::TypeShare& share = plan.by_type[type];
    ++share.n_tensors;
    share.bytes += bytes;
    plan.tensor_bytes += bytes;
    plan.n_parameters += tensor.n_columns() * tensor.n_rows();
    if (tensor.name.starts_with("blk.0.") && tensor.name.ends_with("_exps.weight"))
      plan.expert_bytes += bytes / c.experts.n_experts;
  }
  TRY(chooser.check_all_matched());
  plan.notes = chooser.notes();
  if (c.family == convert::Family::kQwen4Exp && c.ngram.block < 0)
    plan.notes.emplace_back("no n-gram table: that needs two blocks and --ngram-rows above 0");

  plan.metadata = convert::model_metadata(c, hash, convert::HeadBlock::kAbsent);
  const std::string name = options.name.empty() ? geometry.title + " synthetic" : options.name;
  plan.metadata.set("general.name", GgufValue::string(name));
  plan.metadata.set("general.quantization_version", GgufValue::u32(2));
  // Nobody should take the file for a model.
  plan.metadata.set("general.description", GgufValue::string("random weights, for measurements only"));
  plan.metadata.set("forebay.synth.seed", GgufValue::u64(options.seed));
  plan.metadata.set("forebay.synth.skew", GgufValue::f32(static_cast<float>(options.routing.skew)));
  plan.metadata.set("forebay.synth.locality", GgufValue::f32(static_cast<float>(options.routing.locality)));
  add_text_metadata(std::move(vocabulary), plan.metadata);

  constexpr uint64_t kAlignment = 32;  // GGUF's default
  plan.file_bytes = TRY(header_bytes(plan));
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    plan.file_bytes += (plan.tensor_size(i) + kAlignment - 1) / kAlignment * kAlignment;
  return plan;
}

}  // namespace

uint64_t SynthPlan::tensor_size(size_t i) const {
  return tensors[i].n_rows() *
         static_cast<uint64_t>(row_bytes(types[i], static_cast<int64_t>(tensors[i].n_columns())));
}

Result<SynthPlan> plan_synthetic(const SynthOptions& options) {
  try {
    return plan(options);
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, "no memory left to plan the file"};
  }
}

}  // namespace forebay
