/// Any bytes as a safetensors file: an error, or tensors that fill the file and survive being written.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "../safetensors/raw_safetensors.h"
#include "../support/memory_storage.h"
#include "fuzz.h"
#include "safetensors/safetensors.h"

namespace forebay {
namespace {

void check_one_line(const Error& error) {
  FUZZ_ASSERT(!error.message.empty());
  FUZZ_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

void check_widening(const SafetensorsFile& file, const SafeTensor& tensor) {
  std::vector<float> values(tensor.n_elements());
  FUZZ_ASSERT(file.read_f32(tensor, 0, values));
  if (values.empty()) return;
  float last = 0;
  FUZZ_ASSERT(file.read_f32(tensor, values.size() - 1, {&last, 1}));
  FUZZ_ASSERT(last == values.back() || (std::isnan(last) && std::isnan(values.back())));
}

void check_copy(Storage& storage, const SafetensorsFile& file) {
  std::vector<SafeTensorData> tensors;
  for (const SafeTensor& tensor : file.tensors())
    tensors.push_back({tensor.name, tensor.type, tensor.shape, file.bytes(tensor)});
  FUZZ_ASSERT(write_safetensors(storage, "copy", tensors, file.metadata()));
  const Result<SafetensorsFile> copy = SafetensorsFile::open(storage, "copy");
  FUZZ_ASSERT(copy.has_value());
  FUZZ_ASSERT(copy->metadata() == file.metadata());
  FUZZ_ASSERT(copy->tensors().size() == tensors.size());
  for (const SafeTensorData& tensor : tensors) {
    const SafeTensor* copied = copy->find(tensor.name);
    FUZZ_ASSERT(copied != nullptr && copied->type == tensor.type && copied->shape == tensor.shape);
    const auto bytes = copy->bytes(*copied);
    FUZZ_ASSERT(std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
}

void check(std::span<const std::byte> input) {
  const auto tensors = parse_safetensors_header(input, input.size(), nullptr);
  if (!tensors) return check_one_line(tensors.error());
  MemoryStorage storage;
  storage.put("input", std::string(reinterpret_cast<const char*>(input.data()), input.size()));
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "input");
  FUZZ_ASSERT(file.has_value());
  uint64_t n_bytes = 0;
  for (const SafeTensor& tensor : file->tensors()) {
    FUZZ_ASSERT(tensor.bytes == tensor.n_elements() * static_cast<uint64_t>(bytes_of(tensor.type)));
    check_widening(*file, tensor);
    n_bytes += tensor.bytes;
  }
  FUZZ_ASSERT(n_bytes <= input.size());
  check_copy(storage, *file);
}

/// The same bytes as the index of a checkpoint whose files are there.
void check_index(std::span<const std::byte> input) {
  MemoryStorage storage;
  storage.put("model.safetensors.index.json",
              std::string(reinterpret_cast<const char*>(input.data()), input.size()));
  storage.put("x", raw::file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  storage.put("y", raw::file(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  const Result<SafetensorsFile> file = SafetensorsFile::open(storage, "model.safetensors.index.json");
  if (!file) check_one_line(file.error());
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  forebay::check(input);
  forebay::check_index(input);
  return 0;
}

FuzzSeeds fuzz_seeds() {
  using forebay::raw::file;
  FuzzSeeds seeds;
  seeds.inputs = {
      file("{}", 0),
      file(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
           R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
           R"("c":{"dtype":"F8_E4M3","shape":[],"data_offsets":[20,21]}}   )",
           21),
      file(R"({"f64":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"f16":{"dtype":"F16","shape":[1],)"
           R"("data_offsets":[8,10]},"i64":{"dtype":"I64","shape":[0],"data_offsets":[10,10]}})",
           10),
      R"({"metadata":{"total_size":2},"weight_map":{"a":"x","b":"y"}})",
  };
  seeds.tokens = {R"("dtype":"I32")",
                  R"("shape":[1])",
                  R"("data_offsets":[0,4])",
                  "\"x\"",
                  "\"y\"",
                  "\"a\":",
                  "\"b\":",
                  "18446744073709551615",
                  "9223372036854775808",
                  "-1",
                  "1e5",
                  "[[[[",
                  "{\"a\":{",
                  "\\u0000",
                  "null"};
  return seeds;
}
