/// Models in several files: a layer's tensors may be anywhere among them.
#include "gguf/split.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "raw_gguf.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

/// What one shard file holds; every tensor is 8 F32 values, all equal to the value here.
struct Shard {
  std::vector<std::pair<std::string, float>> tensors;
  uint64_t no;  // split.no
  uint64_t count;
  uint64_t n_tensors;  // split.tensors.count
  uint32_t alignment = 32;
};

class SplitModel : public testing::Test {
 protected:
  SplitModel() : storage_(make_posix_storage()) {
    shards_ = {{{}, 0, 3, 4, 32},
               {{{"token_embd.weight", 1}, {"blk.0.ffn_gate_exps.weight", 2}}, 1, 3, 4, 4096},
               {{{"blk.0.ffn_down_exps.weight", 3}, {"output.weight", 4}}, 2, 3, 4, 64}};
  }

  Path shard_path(size_t number) const {
    return directory_ / Path("tiny-0000" + std::to_string(number) + "-of-00003.gguf");
  }

  void write() {
    for (size_t i = 0; i < shards_.size(); ++i) write_shard(shard_path(i + 1), shards_[i], i == 0);
  }

  void write_shard(const Path& path, const Shard& shard, bool first) {
    Result<GgufWriter> writer = GgufWriter::create(*storage_, path);
    ASSERT_OK(writer);
    if (first) writer->set("general.architecture", GgufValue::string("tiny"));
    writer->set("split.no", GgufValue::u16(static_cast<uint16_t>(shard.no)));
    writer->set("split.count", GgufValue::u16(static_cast<uint16_t>(shard.count)));
    writer->set("split.tensors.count", GgufValue::i32(static_cast<int32_t>(shard.n_tensors)));
    if (shard.alignment != 32) writer->set("general.alignment", GgufValue::u32(shard.alignment));
    const uint64_t ne[] = {8};
    for (const auto& [name, value] : shard.tensors) ASSERT_OK(writer->declare(name, DType::kF32, ne));
    ASSERT_OK(writer->write_headers());
    for (const auto& [name, value] : shard.tensors) {
      const std::vector<float> values(8, value);
      ASSERT_OK(writer->write_data(std::as_bytes(std::span(values))));
    }
    ASSERT_OK(writer->finish());
  }

  Result<GgufFile> open(size_t number) { return GgufFile::open(*storage_, shard_path(number)); }

  TemporaryDirectory directory_;
  std::unique_ptr<Storage> storage_;
  std::vector<Shard> shards_;
};

TEST_F(SplitModel, LoadsFromAnyShard) {
  write();
  for (const size_t number : {1, 2, 3}) {
    const Result<GgufFile> file = open(number);
    ASSERT_OK(file);
    EXPECT_EQ(file->n_shards(), 3);
    EXPECT_EQ(file->path(), shard_path(number));
    EXPECT_EQ(*file->metadata().get_string("general.architecture"), "tiny");
    ASSERT_EQ(file->tensors().size(), 4u);
    uint64_t file_bytes = 0;
    for (const size_t n : {1, 2, 3}) file_bytes += std::filesystem::file_size(shard_path(n));
    EXPECT_EQ(file->file_bytes(), file_bytes);
    for (const Shard& shard : shards_)
      for (const auto& [name, value] : shard.tensors) {
        const TensorInfo* tensor = file->find(name);
        ASSERT_NE(tensor, nullptr) << name;
        EXPECT_EQ(tensor->shard, static_cast<int>(shard.no));
        EXPECT_EQ(tensor->offset % shard.alignment, 0u);
        float first;
        std::memcpy(&first, file->bytes(*tensor).data(), sizeof first);
        EXPECT_EQ(first, value) << name;
      }
    EXPECT_EQ(file->find("blk.0.ffn_up_exps.weight"), nullptr);
  }
}

TEST_F(SplitModel, OpensRelativeNames) {
  write();
  const Path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const Result<GgufFile> file = GgufFile::open(*storage_, "tiny-00002-of-00003.gguf");
  std::filesystem::current_path(before);
  ASSERT_OK(file);
  EXPECT_EQ(file->n_shards(), 3);
}

TEST_F(SplitModel, MissingShardsAreNamed) {
  write();
  std::filesystem::remove(shard_path(2));
  EXPECT_TRUE(fails_with(open(1), Code::kNotFound, "1 of 3", "tiny-00002-of-00003.gguf"));
  std::filesystem::remove(shard_path(3));
  EXPECT_TRUE(
      fails_with(open(1), Code::kNotFound, "2 of 3", "tiny-00002-of-00003.gguf", "tiny-00003-of-00003.gguf"));
  EXPECT_TRUE(fails_with(open(2), Code::kNotFound, "tiny-00002-of-00003.gguf"));
}

TEST_F(SplitModel, DuplicateTensorsAreNamed) {
  shards_[2].tensors[0].first = "token_embd.weight";
  write();
  EXPECT_TRUE(fails_with(open(1), Code::kCorrupt, "'token_embd.weight'", "shard 2", "shard 3"));
}

TEST_F(SplitModel, NumbersMustAgree) {
  shards_[1].no = 2;
  write();
  EXPECT_TRUE(fails_with(open(1), Code::kCorrupt, "tiny-00002", "'split.no'", "2, wanted 1"));
  shards_[1].no = 1;
  shards_[1].count = 4;
  write();
  EXPECT_TRUE(fails_with(open(1), Code::kCorrupt, "tiny-00002", "'split.count'", "4, wanted 3"));
  shards_[1].count = 3;
  shards_[2].n_tensors = 5;
  write();
  EXPECT_TRUE(fails_with(open(1), Code::kCorrupt, "tiny-00003", "'split.tensors.count'", "5, wanted 4"));
  shards_[2].n_tensors = 4;
  shards_[2].tensors.pop_back();
  write();
  EXPECT_TRUE(fails_with(open(2), Code::kCorrupt, "tiny-00001", "'split.tensors.count'", "4, wanted 3"));
}

TEST_F(SplitModel, AShardUnderAnotherNameCannotFindTheRest) {
  write();
  const Path renamed = directory_ / "model.gguf";
  std::filesystem::rename(shard_path(2), renamed);
  EXPECT_TRUE(fails_with(GgufFile::open(*storage_, renamed), Code::kInvalidArgument, "model.gguf",
                         "*-0000N-of-00003.gguf"));
  const Path miscounted = directory_ / "tiny-00002-of-00004.gguf";
  std::filesystem::rename(renamed, miscounted);
  EXPECT_TRUE(fails_with(GgufFile::open(*storage_, miscounted), Code::kInvalidArgument, "00003"));
}

TEST_F(SplitModel, ACorruptShardIsNamed) {
  write();
  std::filesystem::resize_file(shard_path(3), std::filesystem::file_size(shard_path(3)) - 64);
  EXPECT_TRUE(fails_with(open(1), Code::kCorrupt, "tiny-00003", "'output.weight'"));
}

TEST_F(SplitModel, AWholeModelMayHaveAShardsName) {
  write_shard(shard_path(2), {{{"t", 1}}, 0, 1, 1, 32}, true);
  const Result<GgufFile> file = open(2);
  ASSERT_OK(file);
  EXPECT_EQ(file->n_shards(), 1);
}

TEST(ShardName, FollowsThePattern) {
  const auto name = gguf::parse_shard_name("/models/a-b-00002-of-00012.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "a-b");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 12);
  EXPECT_EQ(gguf::shard_path("/models/a-b-00002-of-00012.gguf", *name, 11),
            "/models/a-b-00011-of-00012.gguf");
  for (const char* other :
       {"model.gguf", "a-0002-of-00012.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf",
        "a-00001-of-00002.bin", "00001-of-00002.gguf", "a-0000x-of-00002.gguf", ".gguf", ""})
    EXPECT_FALSE(gguf::parse_shard_name(other).has_value()) << other;
}

TEST(OpenGguf, ErrorsNameTheFile) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const TemporaryDirectory directory;
  EXPECT_TRUE(
      fails_with(GgufFile::open(*storage, directory / "absent.gguf"), Code::kNotFound, "absent.gguf"));
  { std::unique_ptr<WritableFile> file = *storage->create(directory / "empty.gguf"); }
  EXPECT_TRUE(
      fails_with(GgufFile::open(*storage, directory / "empty.gguf"), Code::kCorrupt, "empty.gguf", "magic"));
}

}  // namespace
}  // namespace forebay
