#include "gguf/fingerprint.h"

#include <gtest/gtest.h>

#include "support/memory_storage.h"
#include "support/result_matchers.h"

namespace forebay {
namespace {

struct Small {
  std::string architecture = "qwen3", name = "a", chat_template = "x", token = "the", tensor = "w";
  float theta = 10000;
  uint8_t first = 1, middle = 2, last = 3;
  size_t n_bytes = 1024;
};

uint64_t fingerprint_of_file(const Small& small, const Path& path = "m.gguf") {
  MemoryStorage storage;
  GgufWriter writer = GgufWriter::create(storage, path).value();
  writer.set("general.architecture", GgufValue::string(small.architecture));
  writer.set("general.name", GgufValue::string(small.name));
  writer.set("qwen3.rope.freq_base", GgufValue::f32(small.theta));
  writer.set("tokenizer.ggml.tokens", GgufValue::string_array({"a", small.token}));
  writer.set("tokenizer.chat_template", GgufValue::string(small.chat_template));
  const uint64_t ne[] = {small.n_bytes / 4};
  EXPECT_OK(writer.declare(small.tensor, DType::kF32, ne));
  EXPECT_OK(writer.write_headers());
  std::vector<std::byte> bytes(small.n_bytes);
  bytes.front() = std::byte{small.first};
  bytes[small.n_bytes / 2] = std::byte{small.middle};
  bytes.back() = std::byte{small.last};
  EXPECT_OK(writer.write_data(bytes));
  EXPECT_OK(writer.finish());
  return fingerprint(GgufFile::open(storage, path).value());
}

TEST(Fingerprint, IsOfWhatChangesLogits) {
  const uint64_t same = fingerprint_of_file({});
  EXPECT_EQ(fingerprint_of_file({}, "elsewhere.gguf"), same);
  EXPECT_EQ(fingerprint_of_file({.name = "b"}), same);
  EXPECT_EQ(fingerprint_of_file({.chat_template = "y"}), same);
  EXPECT_NE(fingerprint_of_file({.token = "a"}), same);
  EXPECT_NE(fingerprint_of_file({.tensor = "v"}), same);
  EXPECT_NE(fingerprint_of_file({.theta = 5}), same);
  EXPECT_NE(fingerprint_of_file({.first = 7}), same);
  EXPECT_NE(fingerprint_of_file({.middle = 7}), same);
  EXPECT_NE(fingerprint_of_file({.last = 7}), same);
  EXPECT_NE(fingerprint_of_file({.n_bytes = 2048}), same);
}

}  // namespace
}  // namespace forebay
