/// Any bytes as a GGUF file: an error, or headers that hold what they promise and survive being written.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "../gguf/raw_gguf.h"
#include "../support/memory_storage.h"
#include "fuzz.h"
#include "gguf/describe.h"
#include "gguf/gguf.h"

namespace forebay {
namespace {

void check_one_line(const Error& error) {
  FUZZ_ASSERT(!error.message.empty());
  FUZZ_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

template <typename T>
void check_one_line(const Result<T>& result) {
  if (!result.has_value()) check_one_line(result.error());
}

void call_every_getter(const GgufMetadata& metadata, std::string_view key) {
  check_one_line(metadata.get_uint(key));
  check_one_line(metadata.get_int(key));
  check_one_line(metadata.get_float(key));
  check_one_line(metadata.get_bool(key));
  check_one_line(metadata.get_string(key));
  check_one_line(metadata.get_uints(key));
  check_one_line(metadata.get_ints(key));
  check_one_line(metadata.get_floats(key));
  check_one_line(metadata.get_strings(key));
}

void check_placement(const GgufFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    FUZZ_ASSERT(file.find(tensor.name) == &tensor);
    const std::span<const std::byte> bytes = file.bytes(tensor);
    FUZZ_ASSERT(bytes.size() == tensor.bytes);
    volatile std::byte sink{};
    for (const std::byte byte : bytes) sink = byte;
    (void)sink;
    for (const TensorInfo& other : file.tensors())
      FUZZ_ASSERT(&other == &tensor || other.offset >= tensor.offset + tensor.bytes ||
                  tensor.offset >= other.offset + other.bytes);
  }
}

/// Writes what was read; false when a name is too long for other programs, which only the writer minds.
bool write(Storage& storage, const GgufFile& file) {
  Result<GgufWriter> writer = GgufWriter::create(storage, "copy.gguf");
  FUZZ_ASSERT(writer.has_value());
  for (const auto& [key, value] : file.metadata().entries()) writer->set(key, value);
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name.size() > 63) return false;
    FUZZ_ASSERT(
        writer->declare(tensor.name, tensor.type, {tensor.ne.data(), static_cast<size_t>(tensor.n_dims)}));
  }
  FUZZ_ASSERT(writer->write_headers());
  for (const TensorInfo& tensor : file.tensors()) FUZZ_ASSERT(writer->write_data(file.bytes(tensor)));
  FUZZ_ASSERT(writer->finish());
  return true;
}

void check_equal(const GgufFile& a, const GgufFile& b) {
  FUZZ_ASSERT(a.metadata().entries().size() == b.metadata().entries().size());
  for (size_t i = 0; i < a.metadata().entries().size(); ++i) {
    const auto& [key, value] = a.metadata().entries()[i];
    const auto& [copied_key, copied_value] = b.metadata().entries()[i];
    FUZZ_ASSERT(key == copied_key);
    // As text, because NaN is not equal to itself.
    FUZZ_ASSERT(gguf::type_string(value) == gguf::type_string(copied_value));
    FUZZ_ASSERT(gguf::value_json(value) == gguf::value_json(copied_value));
  }
  FUZZ_ASSERT(a.tensors().size() == b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const TensorInfo& tensor = a.tensors()[i];
    const TensorInfo& copied = b.tensors()[i];
    FUZZ_ASSERT(tensor.name == copied.name && tensor.type == copied.type && tensor.ne == copied.ne);
    const auto bytes = a.bytes(tensor);
    const auto copied_bytes = b.bytes(copied);
    FUZZ_ASSERT(std::equal(bytes.begin(), bytes.end(), copied_bytes.begin(), copied_bytes.end()));
  }
}

void check(std::span<const std::byte> input) {
  // On the caller's bytes: a copy in a string would hide a read just past the end.
  const Result<GgufHeaders> headers = parse_gguf_headers(input, input.size());
  if (!headers) return check_one_line(headers.error());
  MemoryStorage storage;
  storage.put("input.gguf", std::string(reinterpret_cast<const char*>(input.data()), input.size()));
  const Result<GgufFile> file = GgufFile::open(storage, "input.gguf");
  if (!file) return check_one_line(file.error());
  for (const auto& [key, value] : file->metadata().entries()) {
    (void)gguf::value_string(value);
    call_every_getter(file->metadata(), key);
  }
  check_placement(*file);
  // Padding in memory is only bounded for alignments that somebody would use.
  if (*file->metadata().get_uint_or("general.alignment", 32) > 65536 || !write(storage, *file)) return;
  // A shard's copy still says that it is one of several.
  const Result<GgufFile> copy = GgufFile::open(storage, "copy.gguf");
  FUZZ_ASSERT(copy.has_value());
  check_equal(*file, *copy);
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  forebay::check(std::as_bytes(std::span(data, size)));
  return 0;
}

FuzzSeeds fuzz_seeds() {
  using namespace forebay;
  using raw::le;
  FuzzSeeds seeds;
  seeds.inputs.push_back(raw::File().bytes());
  seeds.inputs.push_back(raw::small_file().bytes());
  raw::File old = raw::small_file();
  old.version = 2;
  seeds.inputs.push_back(old.bytes());
  raw::File aligned;
  aligned.alignment = 64;
  aligned.key("general.alignment", GgufType::kU32, le<uint32_t>(64))
      .tensor("t.q2_0", {64, 2}, raw::kQ2_0, 0)
      .tensor("t.f32", {1, 1, 1, 2}, raw::kF32, 64)
      .data_bytes(128);
  seeds.inputs.push_back(aligned.bytes());
  raw::File shard;
  shard.key("split.no", GgufType::kU16, le<uint16_t>(0))
      .key("split.count", GgufType::kU16, le<uint16_t>(1))
      .key("split.tensors.count", GgufType::kI32, le<int32_t>(0));
  seeds.inputs.push_back(shard.bytes());
  for (uint32_t type = 0; type <= 13; ++type) seeds.tokens.push_back(le(type));
  seeds.tokens.insert(
      seeds.tokens.end(),
      {raw::text("general.alignment") + le(GgufType::kU32) + le<uint32_t>(128), raw::text("split.count"),
       le(GgufType::kArray) + le(GgufType::kString) + le<uint64_t>(1) + raw::text("x"),
       raw::text("t") + le<uint32_t>(1) + le<uint64_t>(8) + le(raw::kF32) + le<uint64_t>(0),
       le<uint32_t>(raw::kQ2_0), "GGUF"});
  return seeds;
}
