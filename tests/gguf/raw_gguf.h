/// GGUF files put together field by field, for what GgufWriter refuses to write.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace forebay::raw {

template <typename T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string text(std::string_view value) {
  return le<uint64_t>(value.size()) + std::string(value);
}

inline std::string strings(std::initializer_list<std::string_view> values) {
  std::string out = le(GgufType::kString) + le<uint64_t>(values.size());
  for (const std::string_view value : values) out += text(value);
  return out;
}

/// Type ids as in the file, so that unknown ones can be written.
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kQ8_0 = 8;
constexpr uint32_t kQ2_0 = 42;

struct File {
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the data section; no key is written for it
  std::string keys;
  std::string tensors;
  uint64_t n_keys = 0;
  uint64_t n_tensors = 0;
  std::string data;

  File& key(std::string_view name, GgufType type, const std::string& payload) {
    keys += text(name) + le(type) + payload;
    ++n_keys;
    return *this;
  }
  File& tensor(std::string_view name, std::initializer_list<uint64_t> ne, uint32_t type, uint64_t offset) {
    tensors += text(name) + le(static_cast<uint32_t>(ne.size()));
    for (const uint64_t n : ne) tensors += le(n);
    tensors += le(type) + le(offset);
    ++n_tensors;
    return *this;
  }
  File& data_bytes(size_t n) {
    data.assign(n, '\x5a');
    return *this;
  }

  std::string headers() const { return "GGUF" + le(version) + le(n_tensors) + le(n_keys) + keys + tensors; }
  std::string bytes() const {
    std::string out = headers();
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

inline Result<GgufHeaders> parse(std::string_view file) {
  return parse_gguf_headers(std::as_bytes(std::span(file)), file.size());
}

/// A small file with every value type and two tensors: 24 F32 values and 64 Q8_0 ones.
inline File small_file() {
  using enum GgufType;
  File file;
  file.key("general.architecture", kString, text("tiny"))
      .key("u8", kU8, le<uint8_t>(200))
      .key("i8", kI8, le<int8_t>(-100))
      .key("u16", kU16, le<uint16_t>(60000))
      .key("i16", kI16, le<int16_t>(-30000))
      .key("u32", kU32, le<uint32_t>(4000000000))
      .key("i32", kI32, le<int32_t>(-2000000000))
      .key("f32", GgufType::kF32, le<float>(0.1f))
      .key("bool", kBool, le<uint8_t>(1))
      .key("u64", kU64, le<uint64_t>(UINT64_MAX))
      .key("i64", kI64, le<int64_t>(INT64_MIN))
      .key("f64", kF64, le<double>(0.1))
      .key("numbers", kArray, le(kI16) + le<uint64_t>(3) + le<int16_t>(1) + le<int16_t>(-2) + le<int16_t>(3))
      .key("flags", kArray, le(kBool) + le<uint64_t>(2) + le<uint8_t>(0) + le<uint8_t>(1))
      .key("words", kArray, strings({"a", "", "caf\xc3\xa9"}))
      .key("none", kArray, le(kU32) + le<uint64_t>(0));
  file.tensor("a.weight", {6, 4}, raw::kF32, 0).tensor("b.weight", {32, 2}, kQ8_0, 96).data_bytes(96 + 68);
  return file;
}

}  // namespace forebay::raw
