#include "cli/synthetic_model.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <sys/mman.h>

#include "synth/geometry.h"

namespace forebay::cli {
namespace {

/// Pages that nobody touches: address space only.
class EmptyPages : public Mapping {
 public:
  static Result<std::unique_ptr<Mapping>> make(std::span<const std::byte> head, uint64_t bytes) {
    void* data =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      return Error{Code::kOutOfMemory, fmt::format("a model's headers: no {} bytes of address space", bytes)};
    std::memcpy(data, head.data(), head.size());
    return std::unique_ptr<Mapping>(new EmptyPages(data, bytes));
  }
  ~EmptyPages() override { ::munmap(data_, bytes_); }
  std::span<const std::byte> bytes() const override { return {static_cast<const std::byte*>(data_), bytes_}; }

 private:
  EmptyPages(void* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  void* data_;
  uint64_t bytes_;
};

/// Keeps what is written to its one file, and shows it as the beginning of a longer one.
class HeaderStorage : public Storage {
 public:
  explicit HeaderStorage(uint64_t file_bytes) : file_bytes_(file_bytes) {}

  Result<std::unique_ptr<WritableFile>> create(const Path& path) override {
    return std::unique_ptr<WritableFile>(std::make_unique<Writer>(path, head_));
  }
  Result<std::unique_ptr<ReadableFile>> open(const Path& path) override {
    return std::unique_ptr<ReadableFile>(std::make_unique<Reader>(path, head_, file_bytes_));
  }
  Result<void> rename(const Path&, const Path&) override { return {}; }
  Result<void> remove(const Path&) override { return {}; }
  bool exists(const Path&) override { return false; }

 private:
  class Writer : public WritableFile {
   public:
    Writer(Path path, std::vector<std::byte>& head) : path_(std::move(path)), head_(head) {}
    const Path& path() const override { return path_; }
    uint64_t position() const override { return head_.size(); }
    Result<void> append(std::span<const std::byte> bytes) override {
      head_.insert(head_.end(), bytes.begin(), bytes.end());
      return {};
    }
    Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
      std::copy(bytes.begin(), bytes.end(), head_.begin() + static_cast<std::ptrdiff_t>(offset));
      return {};
    }
    Result<void> sync() override { return {}; }
    Result<void> close() override { return {}; }

   private:
    const Path path_;
    std::vector<std::byte>& head_;
  };

  class Reader : public ReadableFile {
   public:
    Reader(Path path, std::span<const std::byte> head, uint64_t bytes)
        : path_(std::move(path)), head_(head), bytes_(bytes) {}
    const Path& path() const override { return path_; }
    uint64_t size() const override { return bytes_; }
    Result<void> read_at(uint64_t, std::span<std::byte>) override {
      return Error{Code::kUnsupported, path_.string() + ": has no content"};
    }
    Result<std::unique_ptr<Mapping>> map() override { return EmptyPages::make(head_, bytes_); }

   private:
    const Path path_;
    std::span<const std::byte> head_;
    uint64_t bytes_;
  };

  const uint64_t file_bytes_;
  std::vector<std::byte> head_;
};

/// The configuration is read as from any file; the vocabulary says nothing to it.
Result<ModelConfig> config_of(const SynthPlan& plan) {
  HeaderStorage storage(plan.file_bytes);
  const Path path = "model.gguf";
  GgufWriter writer = TRY(GgufWriter::create(storage, path));
  for (const auto& [key, value] : plan.metadata.entries())
    if (!key.starts_with("tokenizer.")) writer.set(key, value);
  for (size_t i = 0; i < plan.tensors.size(); ++i)
    TRY(writer.declare(plan.tensors[i].name, plan.types[i], plan.tensors[i].ne));
  TRY(writer.write_headers());
  return ModelConfig::from_gguf(TRY(GgufFile::open(storage, path)));
}

}  // namespace

Result<SyntheticModel> SyntheticModel::like(std::string_view name) {
  SynthOptions options;
  options.geometry = TRY(synth::find_geometry(name));
  options.name = options.geometry.title;
  if (options.geometry.n_ngram_rows > 0) {
    constexpr uint64_t kPublishedRows = 320'000'000;
    synth::GeometryChanges changes;
    changes.n_ngram_rows = kPublishedRows;
    options.geometry = TRY(synth::changed(std::move(options.geometry), changes));
  }
  SyntheticModel model;
  model.plan_ = TRY(plan_synthetic(options));
  model.config_ = TRY(config_of(model.plan_));
  return model;
}

Result<ModelFootprint> SyntheticModel::footprint(const TypePlan& types) const {
  TypeChooser chooser(types);
  std::vector<TensorInfo> tensors;
  for (const synth::SynthTensor& planned : plan_.tensors) {
    TensorInfo& tensor = tensors.emplace_back();
    tensor.name = planned.name;
    tensor.type = chooser.choose(planned.name, planned.role, planned.n_columns(), /*from_f16=*/false);
    tensor.n_dims = static_cast<int>(planned.ne.size());
    std::copy(planned.ne.begin(), planned.ne.end(), tensor.ne.begin());
    tensor.bytes = planned.n_rows() *
                   static_cast<uint64_t>(row_bytes(tensor.type, static_cast<int64_t>(planned.n_columns())));
  }
  TRY(chooser.check_all_matched());
  ModelFootprint footprint = ModelFootprint::from_tensors(config_, tensors, /*with_draft=*/false);
  footprint.text_bytes = text_bytes_of(plan_.metadata);
  return footprint;
}

}  // namespace forebay::cli
