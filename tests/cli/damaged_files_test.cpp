// Files that are broken, one way at a time: a line and exit code 1, whatever the command.
#include <fstream>

#include <gtest/gtest.h>

#include "core/storage.h"
#include "gguf/gguf.h"
#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

class Damaged : public ::testing::Test {
 protected:
  void write_bytes(const std::string& bytes) { std::ofstream(file_, std::ios::binary) << bytes; }
  void write(const ScriptedModel& model) { write_scripted_model(file_, model); }
  static std::string sound_bytes() { return *read_text(*make_posix_storage(), scripted_model()); }
  Finished run(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"run", "-m", file_.string(), "-n", "1", "-p", "x"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }

  TemporaryDirectory directory_;
  Path file_ = directory_ / "damaged.gguf";
};

TEST_F(Damaged, TruncationsAtEveryBoundary) {
  const std::string bytes = sound_bytes();
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const GgufFile file = *GgufFile::open(*storage, scripted_model());
  std::vector<uint64_t> sizes = {0, 3, 4, 8, 16, 23, 24, 100, 1000, bytes.size() - 1};
  for (const TensorInfo& tensor : file.tensors()) {
    sizes.push_back(tensor.offset);
    sizes.push_back(tensor.offset + tensor.bytes - 1);
  }
  ASSERT_GT(sizes.size(), 30u);
  for (const uint64_t size : sizes) {
    write_bytes(bytes.substr(0, size));
    EXPECT_TRUE(is_error(run(), 1, {file_.string()})) << "cut to " << size;
    EXPECT_TRUE(is_error(run_program({"inspect", file_.string()}), 1, {file_.string()})) << "cut to " << size;
  }
}

TEST_F(Damaged, FlippedHeaderBytes) {
  const std::string bytes = sound_bytes();
  for (size_t i = 0; i < 80; ++i) {
    std::string flipped = bytes;
    const size_t at = i < 24 ? i : i * 97;
    flipped[at] = static_cast<char>(~flipped[at]);
    write_bytes(flipped);
    for (const Finished& finished : {run_program({"inspect", file_.string()}), run()}) {
      EXPECT_TRUE(finished.code == 0 || finished.code == 1) << "byte " << at << ": " << finished;
      if (finished.code == 1) {
        EXPECT_TRUE(is_error(finished, 1, {})) << "byte " << at;
      }
    }
  }
}

TEST_F(Damaged, WrongMagicIsNamed) {
  std::string bytes = sound_bytes();
  bytes[0] = 'g';
  write_bytes(bytes);
  EXPECT_TRUE(is_error(run(), 1, {file_.string(), "not a GGUF file"}));
}

TEST_F(Damaged, UnknownArchitecture) {
  write({.architecture = "qwen9"});
  EXPECT_TRUE(is_error(run(), 1, {file_.string(), "'qwen9'", "qwen4exp"}));
  // The container is sound, and its text side too.
  EXPECT_EQ(run_program({"inspect", file_.string()}).code, 0);
  EXPECT_EQ(run_program({"tokenize", "-m", file_.string(), "--json", "hi"}).out, "{\"ids\": [104, 105]}\n");
}

TEST_F(Damaged, MissingTensor) {
  for (const char* name : {"token_embd.weight", "blk.0.attn_v.weight", "blk.0.ffn_down_exps.weight"}) {
    write({.missing = name});
    EXPECT_TRUE(is_error(run(), 1, {file_.string(), name}));
    EXPECT_EQ(run_program({"inspect", file_.string()}).code, 0);
  }
}

TEST_F(Damaged, WrongShape) {
  for (const char* name : {"output_norm.weight", "blk.0.attn_k.weight", "blk.0.ffn_up_exps.weight"}) {
    write({.misshapen = name});
    EXPECT_TRUE(is_error(run(), 1, {file_.string(), name, "["}));
    EXPECT_EQ(run_program({"inspect", file_.string()}).code, 0);
  }
}

TEST_F(Damaged, WeightsThatAreNotNumbers) {
  for (const char* name : {"output_norm.weight", "output.weight", "blk.0.attn_output.weight"}) {
    write({.poisoned = name});
    EXPECT_TRUE(is_error(run({"-q"}), 1, {file_.string(), name}));
  }
}

TEST_F(Damaged, NoVocabulary) {
  write({.vocabulary = false});
  EXPECT_TRUE(is_error(run(), 1, {file_.string(), "no vocabulary"}));
  EXPECT_TRUE(is_error(run({"--raw"}), 1, {file_.string(), "no vocabulary"}));
  EXPECT_TRUE(
      is_error(run_program({"tokenize", "-m", file_.string(), "x"}), 1, {file_.string(), "no vocabulary"}));
  EXPECT_EQ(run_program({"inspect", file_.string()}).code, 0);
  const std::string out = (directory_ / "out.safetensors").string();
  EXPECT_EQ(run_program({"logits", "-m", file_.string(), "--ids", "1,2", "-o", out}).code, 0);
}

TEST_F(Damaged, NoTemplate) {
  write({.chat_template = std::nullopt});
  EXPECT_TRUE(is_error(run(), 1, {file_.string(), "no chat template"}));
  EXPECT_EQ(run({"--raw"}).code, 0);
  EXPECT_TRUE(is_error(
      run_program({"template", "-m", file_.string(), "--json", "-"}, {.input = "{\"messages\": []}"}), 1,
      {file_.string(), "no chat template"}));
}

TEST_F(Damaged, BrokenTemplate) {
  write({.chat_template = "first line\n{% for %}"});
  EXPECT_TRUE(is_error(run(), 1, {"template line 2"}));
  EXPECT_EQ(run({"--raw"}).code, 0);
  write({.chat_template = "{{ raise_exception('not this way') }}"});
  EXPECT_TRUE(is_error(run(), 1, {"not this way"}));
}

}  // namespace
}  // namespace forebay::cli
