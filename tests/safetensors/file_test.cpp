/// Checkpoints as they lie on disk: one file, a directory, an index and its files.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "safetensors/safetensors.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

class Checkpoint : public testing::Test {
 protected:
  /// A file of one-element F32 tensors.
  void write(const Path& name, const std::map<std::string, float>& values) {
    std::vector<SafeTensorData> tensors;
    for (const auto& [tensor, value] : values)
      tensors.push_back({tensor, SafeType::kF32, {1}, std::as_bytes(std::span(&value, 1))});
    ASSERT_OK(write_safetensors(*storage_, directory_ / name, tensors, {{"from", name.string()}}));
  }
  void write_index(const std::string& weight_map) {
    std::ofstream(directory_ / "model.safetensors.index.json")
        << R"({"metadata": {"total_size": 12}, "weight_map": )" << weight_map << "}";
  }
  void write_shards() {
    write("model-00001-of-00002.safetensors", {{"a", 1}, {"b", 2}});
    write("model-00002-of-00002.safetensors", {{"c", 3}});
    write_index(R"({"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
                    "c": "model-00002-of-00002.safetensors"})");
  }
  Result<SafetensorsFile> open(const Path& path) { return SafetensorsFile::open(*storage_, path); }

  static void expect_values(const SafetensorsFile& file, const std::map<std::string, float>& values) {
    EXPECT_EQ(file.tensors().size(), values.size());
    for (const auto& [name, value] : values) {
      const SafeTensor* tensor = file.find(name);
      ASSERT_NE(tensor, nullptr) << name;
      float read = 0;
      ASSERT_OK(file.read_f32(*tensor, 0, {&read, 1}));
      EXPECT_EQ(read, value) << name;
    }
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<Storage> storage_ = make_posix_storage();
};

TEST_F(Checkpoint, OneFileByNameOrDirectory) {
  write("model.safetensors", {{"a", 1}, {"b", 2}});
  for (const Path& path : {directory_.path(), directory_ / "model.safetensors"}) {
    const Result<SafetensorsFile> file = open(path);
    ASSERT_OK(file);
    expect_values(*file, {{"a", 1}, {"b", 2}});
    EXPECT_EQ(file->metadata().at("from"), "model.safetensors");
    EXPECT_EQ(file->find("c"), nullptr);
  }
}

TEST_F(Checkpoint, AnIndexByNameOrDirectory) {
  write_shards();
  for (const Path& path : {directory_.path(), directory_ / "model.safetensors.index.json"}) {
    const Result<SafetensorsFile> file = open(path);
    ASSERT_OK(file);
    expect_values(*file, {{"a", 1}, {"b", 2}, {"c", 3}});
  }
}

TEST_F(Checkpoint, MissingFilesAreNamed) {
  write_shards();
  std::filesystem::remove(directory_ / "model-00002-of-00002.safetensors");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kNotFound, "model.safetensors.index.json",
                         "model-00002-of-00002.safetensors"));
  EXPECT_TRUE(fails_with(open(directory_ / "absent.safetensors"), Code::kNotFound, "absent.safetensors"));
  const TemporaryDirectory empty;
  EXPECT_TRUE(fails_with(open(empty.path()), Code::kInvalidArgument, empty.path().string(),
                         "model.safetensors", "model.safetensors.index.json"));
}

TEST_F(Checkpoint, IndexAndFilesMustAgree) {
  write_shards();
  write_index(R"({"a": "model-00001-of-00002.safetensors", "d": "model-00002-of-00002.safetensors"})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"d\"", "model-00002"));
  write_index(R"({"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"a\"", "model-00002"));
  write("model-00002-of-00002.safetensors", {{"b", 3}});
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "model-00002", "\"b\"", "earlier file"));
}

TEST_F(Checkpoint, IndexesAreChecked) {
  write_index(R"({"a": "../a.safetensors"})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"a\"", "../a.safetensors"));
  write_index(R"({"a": ""})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"a\""));
  write_index(R"({"a": 1})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"a\""));
  write_index(R"([])");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "weight_map"));
  write_index(R"({"a": "x", "a": "y"})");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "\"a\"", "twice"));
  write_index(R"({"a": "x")");
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "index.json", "JSON"));
}

TEST_F(Checkpoint, ACorruptFileIsNamed) {
  write_shards();
  std::filesystem::resize_file(directory_ / "model-00002-of-00002.safetensors", 50);
  EXPECT_TRUE(fails_with(open(directory_.path()), Code::kCorrupt, "model-00002-of-00002.safetensors", "50"));
}

TEST_F(Checkpoint, FailedReadsAreErrors) {
  write_shards();
  for (const StorageOp op : {StorageOp::kOpen, StorageOp::kRead, StorageOp::kMap}) {
    for (int fail_at = 1;; ++fail_at) {
      FaultyStorage storage(*storage_, {.op = op, .fail_at = fail_at});
      const Result<SafetensorsFile> file = SafetensorsFile::open(storage, directory_.path());
      if (storage.n_faults() == 0) {
        ASSERT_OK(file);
        EXPECT_GE(fail_at, 2);
        break;
      }
      EXPECT_TRUE(fails_with(file, Code::kIo, directory_.path().string(), "injected fault"));
    }
  }
}

}  // namespace
}  // namespace forebay
