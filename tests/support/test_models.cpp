#include "test_models.h"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "convert/convert.h"
#include "temporary_directory.h"

namespace forebay::testing {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

}  // namespace

std::filesystem::path converted_vectors(const std::string& family, const std::string& type) {
  static TemporaryDirectory folder;
  const std::filesystem::path out = folder / (family + "-" + type + ".gguf");
  if (std::filesystem::exists(out)) return out;
  const auto storage = make_posix_storage();
  ThreadPool pool(1);
  ConvertOptions options;
  options.types = must(parse_type_plan(type));
  must(convert_checkpoint(*storage, std::filesystem::path(FOREBAY_TEST_DATA) / "vectors" / family, out,
                          options, pool, [](const ConvertProgress&) {}, {}));
  return out;
}

std::filesystem::path embedded_model() {
  return std::filesystem::path(FOREBAY_SOURCE_DIR) / "models" / "pebble.gguf";
}

Expected::Expected(const std::filesystem::path& file)
    : storage_(make_posix_storage()),
      file_(std::make_unique<SafetensorsFile>(must(SafetensorsFile::open(*storage_, file)))) {}

bool Expected::has(const std::string& name) const {
  return file_->find(name) != nullptr;
}

std::vector<float> Expected::floats(const std::string& name) const {
  const SafeTensor* tensor = file_->find(name);
  if (tensor == nullptr) throw std::runtime_error("no tensor " + name);
  std::vector<float> out(tensor->n_elements());
  if (Result<void> read = file_->read_f32(*tensor, 0, out); !read)
    throw std::runtime_error(read.error().message);
  return out;
}

std::vector<int32_t> Expected::ints(const std::string& name) const {
  const SafeTensor* tensor = file_->find(name);
  if (tensor == nullptr || tensor->type != SafeType::kI32) throw std::runtime_error("no i32 tensor " + name);
  std::vector<int32_t> out(tensor->n_elements());
  std::memcpy(out.data(), file_->bytes(*tensor).data(), tensor->bytes);
  return out;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::vector<int32_t> some_ids(int64_t n, int salt) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(static_cast<int32_t>((i * 131 + salt * 57 + i * i % 89) % 500));
  return ids;
}

std::vector<int32_t> ids_of(const std::string& family) {
  return expected_of(family).ints("ids");
}

Expected expected_of(const std::string& family) {
  return Expected(std::filesystem::path(FOREBAY_TEST_DATA) / "vectors" / family / "expected.safetensors");
}

LoadedModel::LoadedModel(const std::filesystem::path& path, int n_threads, Isa isa, ModelOptions options)
    : storage(make_posix_storage()), pool(n_threads), kernels(pool, isa) {
  file = std::make_unique<GgufFile>(must(GgufFile::open(*storage, path)));
  model = std::make_unique<Model>(must(Model::load(*storage, *file, nullptr, options, kernels, budget)));
}

SequenceState LoadedModel::state(int64_t context) {
  return must(model->new_state(context));
}

std::vector<float> LoadedModel::logits(const std::vector<int32_t>& ids, int64_t chunk) {
  SequenceState s = state(static_cast<int64_t>(ids.size()));
  std::vector<float> out;
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const size_t n = std::min<size_t>(chunk, ids.size() - first);
    const Span span{&s, std::span(ids).subspan(first, n), LogitRows::kAll};
    const ForwardOutput output = must(model->forward({&span, 1}));
    out.insert(out.end(), output.logits.data, output.logits.data + output.logits.rows * output.logits.cols);
  }
  return out;
}

std::vector<float> decoded(const KvRows& rows, int64_t first, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n * rows.width()));
  for (int64_t i = 0; i < n * rows.n_heads; ++i)
    read_head(Isa::kReference, rows, first + i / rows.n_heads, static_cast<int>(i % rows.n_heads),
              out.data() + i * rows.head_dim);
  return out;
}

}  // namespace forebay::testing
