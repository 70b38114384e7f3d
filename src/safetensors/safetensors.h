/// Safetensors: the container Hugging Face checkpoints come in. A u64 header length, a JSON table, bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay {

enum class SafeType { kF64, kF32, kF16, kBF16, kF8E4M3, kI64, kI32, kI16, kI8, kU8, kBool };
std::string_view name_of(SafeType type);  // "BF16"
int bytes_of(SafeType type);

struct SafeTensor {
  std::string name;
  SafeType type = SafeType::kF32;
  std::vector<uint64_t> shape;  // outermost first
  int file = 0;                 // index among the opened files
  uint64_t offset = 0;          // absolute
  uint64_t bytes = 0;

  uint64_t n_elements() const;
};

/// One file, or a directory's model.safetensors / model.safetensors.index.json with all its shards. Mapped.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(Storage& storage, const Path& file_or_directory);

  std::span<const SafeTensor> tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  std::span<const std::byte> bytes(const SafeTensor& tensor) const;
  /// Elements [first, first + out.size()) widened to f32 (any float or integer type).
  Result<void> read_f32(const SafeTensor& tensor, uint64_t first, std::span<float> out) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<SafeTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::shared_ptr<Mapping>> maps_;

  friend class SafetensorsReader;
};

/// Parses the header of one file (the fuzz target's entry). Offsets absolute, checked against file_bytes.
Result<std::vector<SafeTensor>> parse_safetensors_header(std::span<const std::byte> bytes,
                                                         uint64_t file_bytes,
                                                         std::map<std::string, std::string>* metadata);

/// Writes tensors in one go, atomically. Errors: kInvalidArgument for a name given twice, and for bytes that
/// do not match type and shape.
struct SafeTensorData {
  std::string name;
  SafeType type = SafeType::kF32;
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes;
};
Result<void> write_safetensors(Storage& storage, const Path& path, std::span<const SafeTensorData> tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace forebay
