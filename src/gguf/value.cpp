/// Constructors of metadata values in the types that GGUF writers use.
#include <utility>

#include "gguf/gguf.h"

namespace forebay {
namespace {

template <typename T>
GgufValue scalar(GgufType type, T value) {
  return {type, GgufType::kU32, std::move(value)};
}

template <typename T>
GgufValue array(GgufType element, std::vector<T> values) {
  return {GgufType::kArray, element, GgufArray(std::move(values))};
}

}  // namespace

GgufValue GgufValue::u16(uint16_t v) {
  return scalar(GgufType::kU16, uint64_t{v});
}
GgufValue GgufValue::u32(uint32_t v) {
  return scalar(GgufType::kU32, uint64_t{v});
}
GgufValue GgufValue::i32(int32_t v) {
  return scalar(GgufType::kI32, int64_t{v});
}
GgufValue GgufValue::u64(uint64_t v) {
  return scalar(GgufType::kU64, v);
}
GgufValue GgufValue::f32(float v) {
  return scalar(GgufType::kF32, double{v});
}
GgufValue GgufValue::boolean(bool v) {
  return scalar(GgufType::kBool, v);
}
GgufValue GgufValue::string(std::string v) {
  return scalar(GgufType::kString, std::move(v));
}
GgufValue GgufValue::u32_array(std::vector<uint64_t> v) {
  return array(GgufType::kU32, std::move(v));
}
GgufValue GgufValue::i32_array(std::vector<int64_t> v) {
  return array(GgufType::kI32, std::move(v));
}
GgufValue GgufValue::u64_array(std::vector<uint64_t> v) {
  return array(GgufType::kU64, std::move(v));
}
GgufValue GgufValue::f32_array(std::vector<double> v) {
  return array(GgufType::kF32, std::move(v));
}
GgufValue GgufValue::bool_array(std::vector<bool> v) {
  return array(GgufType::kBool, std::move(v));
}
GgufValue GgufValue::string_array(std::vector<std::string> v) {
  return array(GgufType::kString, std::move(v));
}

std::string_view name_of(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return "u8";
    case GgufType::kI8:
      return "i8";
    case GgufType::kU16:
      return "u16";
    case GgufType::kI16:
      return "i16";
    case GgufType::kU32:
      return "u32";
    case GgufType::kI32:
      return "i32";
    case GgufType::kF32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kU64:
      return "u64";
    case GgufType::kI64:
      return "i64";
    case GgufType::kF64:
      return "f64";
  }
  return "unknown";
}

size_t n_items(const GgufArray& array) {
  return std::visit([](const auto& values) { return values.size(); }, array);
}

}  // namespace forebay
