/// A trained checkpoint against sums that were made by hand from the same weights. Needs the model files that
/// lie beside the repository, and is skipped without them.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "convert/convert.h"
#include "core/sha256.h"
#include "gguf/gguf.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using Json = nlohmann::json;

const Path kPebble = Path(FOREBAY_SOURCE_DIR) / ".." / "shared" / "models" / "pebble";

TEST(PebbleTest, EveryTensorHasThePublishedSum) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << kPebble << " is not there";
  Json wanted;
  std::ifstream(kPebble / "gguf-tensors.json") >> wanted;

  const auto storage = make_posix_storage();
  ThreadPool pool(2);
  const TemporaryDirectory directory;
  ConvertOptions options;
  options.types.default_type = DType::kBF16;
  const auto report = convert_checkpoint(*storage, kPebble, directory / "pebble.gguf", options, pool,
                                         [](const ConvertProgress&) {}, {});
  ASSERT_OK(report);
  const auto file = GgufFile::open(*storage, directory / "pebble.gguf");
  ASSERT_OK(file);

  EXPECT_EQ(file->tensors().size(), wanted["tensors"].size());
  for (const auto& [name, expected] : wanted["tensors"].items()) {
    const TensorInfo* tensor = file->find(name);
    ASSERT_NE(tensor, nullptr) << name;
    const std::vector<uint64_t> ne(tensor->ne.begin(), tensor->ne.begin() + tensor->n_dims);
    EXPECT_EQ(ne, expected["ne"].get<std::vector<uint64_t>>()) << name;
    EXPECT_EQ(name_of(tensor->type), expected["type"].get<std::string>()) << name;
    EXPECT_EQ(to_hex(sha256(file->bytes(*tensor))), expected["sha256"].get<std::string>()) << name;
  }
  for (const auto& [key, values] : wanted["ple"].items()) {
    const auto seen = file->metadata().get_uints("qwen4exp.ple." + key);
    ASSERT_OK(seen);
    EXPECT_EQ(*seen, values.get<std::vector<uint64_t>>()) << key;
  }

  const GgufMetadata& metadata = file->metadata();
  EXPECT_EQ(*metadata.get_uint("qwen4exp.block_count"), 9u);
  EXPECT_EQ(*metadata.get_uint("qwen4exp.nextn_predict_layers"), 1u);
  EXPECT_EQ(*metadata.get_uints("qwen4exp.attention.compress_ratios"),
            (std::vector<uint64_t>{0, 0, 0, 4, 0, 0, 0, 4, 0}));
  EXPECT_EQ(*metadata.get_uints("qwen4exp.ple.layers"), std::vector<uint64_t>{0});
  EXPECT_EQ(*metadata.get_uint("qwen4exp.ple.eos_token_id"), 0u);
  EXPECT_EQ(*metadata.get_string("tokenizer.ggml.pre"), "qwen35");
  EXPECT_EQ(*metadata.get_uint("tokenizer.ggml.eos_token_id"), 2u);  // <|im_end|>, of [2, 0]
  EXPECT_EQ(metadata.get_strings("tokenizer.ggml.tokens")->size(), 12288u);
  EXPECT_NEAR(*metadata.get_float("general.sampling.temp"), 0.7, 1e-6);
  EXPECT_EQ(*metadata.get_int("general.sampling.top_k"), 20);
  EXPECT_FALSE(metadata.get_string("tokenizer.chat_template")->empty());
}

}  // namespace
}  // namespace forebay
