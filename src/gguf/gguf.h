/// GGUF containers: metadata, tensor table, and where each tensor's bytes are. Format: docs/formats/gguf.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"
#include "tensor/dtype.h"

namespace forebay {

/// A metadata value. Integers of any width are widened; the width written is chosen by the writer.
/// Arrays hold one kind of element.
using GgufArray = std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>,
                               std::vector<bool>, std::vector<std::string>>;
size_t n_items(const GgufArray& array);

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};
std::string_view name_of(GgufType type);  // "u32"

struct GgufValue {
  GgufType type = GgufType::kU32;     // as in the file; kArray for arrays
  GgufType element = GgufType::kU32;  // element type of an array
  std::variant<uint64_t, int64_t, double, bool, std::string, GgufArray> data;

  bool operator==(const GgufValue&) const = default;

  static GgufValue u16(uint16_t v);
  static GgufValue u32(uint32_t v);
  static GgufValue i32(int32_t v);
  static GgufValue u64(uint64_t v);
  static GgufValue f32(float v);
  static GgufValue boolean(bool v);
  static GgufValue string(std::string v);
  static GgufValue u32_array(std::vector<uint64_t> v);
  static GgufValue i32_array(std::vector<int64_t> v);
  static GgufValue u64_array(std::vector<uint64_t> v);
  static GgufValue f32_array(std::vector<double> v);
  static GgufValue bool_array(std::vector<bool> v);
  static GgufValue string_array(std::vector<std::string> v);
};

/// Key/value pairs in file order, with lookups that accept what writers vary: any integer width and sign,
/// a scalar where an array is expected, and an array of equal values where a scalar is.
class GgufMetadata {
 public:
  const GgufValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Replaces or appends.
  void set(std::string key, GgufValue value);
  const std::vector<std::pair<std::string, GgufValue>>& entries() const { return entries_; }

  /// Errors: kNotFound names the key; kCorrupt when the value has another kind or is out of range.
  Result<uint64_t> get_uint(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  /// A scalar reads as an array of one.
  Result<std::vector<uint64_t>> get_uints(std::string_view key) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;  // bools read as 0/1
  Result<std::vector<double>> get_floats(std::string_view key) const;
  /// Borrowed: valid while the metadata lives and is not changed.
  Result<std::span<const std::string>> get_strings(std::string_view key) const;

  /// The value, or `fallback` when the key is absent (a present value of the wrong kind is still an error).
  Result<uint64_t> get_uint_or(std::string_view key, uint64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string> get_string_or(std::string_view key, std::string fallback) const;

 private:
  std::vector<std::pair<std::string, GgufValue>> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

struct TensorInfo {
  std::string name;
  DType type = DType::kF32;
  int n_dims = 1;
  std::array<uint64_t, 4> ne{1, 1, 1, 1};  // ne[0] contiguous, as in the file
  int shard = 0;
  uint64_t offset = 0;  // absolute, in its shard's file
  uint64_t bytes = 0;

  uint64_t n_elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
  uint64_t n_rows() const { return ne[1] * ne[2] * ne[3]; }
};

/// "[2560, 640, 512]"
std::string shape_string(const TensorInfo& tensor);

/// An open model: one file or all shards of a split one, mapped. Immutable, thread-safe.
class GgufFile {
 public:
  /// Reads and checks the headers of `path` and, for a split file (any shard may be named), of its
  /// siblings. Errors name file, tensor or key, offset, size and limit.
  static Result<GgufFile> open(Storage& storage, const Path& path);

  const GgufMetadata& metadata() const { return metadata_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  /// The tensor's mapped bytes, valid while this file lives.
  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  const Path& path() const { return path_; }
  int n_shards() const { return static_cast<int>(maps_.size()); }
  const Path& shard_path(int shard) const { return shard_paths_[shard]; }
  uint64_t file_bytes() const { return file_bytes_; }  // all shards
  uint32_t version() const { return version_; }

 private:
  GgufMetadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<std::shared_ptr<Mapping>> maps_;
  std::vector<Path> shard_paths_;
  Path path_;
  uint64_t file_bytes_ = 0;
  uint32_t version_ = 3;

  friend class GgufReader;
};

/// Parses one file's headers from memory: what the fuzz target calls. `file_bytes` is the size the offsets
/// are checked against (the span may be shorter only if it covers the headers). Tensor offsets are absolute.
struct GgufHeaders {
  uint32_t version = 3;
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;
  uint64_t data_offset = 0;
};
Result<GgufHeaders> parse_gguf_headers(std::span<const std::byte> bytes, uint64_t file_bytes);

/// Streams a GGUF to disk: metadata, then every tensor declared up front, then the tensors' bytes in
/// declaration order, a piece at a time. Writes through AtomicFile: nothing appears under `path` until
/// finish(). After an error every later call returns that error. Thread-compatible.
class GgufWriter {
 public:
  static Result<GgufWriter> create(Storage& storage, const Path& path);
  GgufWriter(GgufWriter&&) noexcept;
  ~GgufWriter();

  void set(std::string key, GgufValue value);
  /// Declares a tensor; its bytes follow from write_data in the same order. ne as in GGUF.
  Result<void> declare(std::string name, DType type, std::span<const uint64_t> ne);
  /// Writes header and tensor table. No set/declare afterwards.
  Result<void> write_headers();
  /// Appends bytes of the current tensor; the next tensor starts when this one is complete.
  Result<void> write_data(std::span<const std::byte> bytes);
  /// Errors when a declared tensor is incomplete (names it). Syncs and renames.
  Result<void> finish();

 private:
  struct Impl;
  explicit GgufWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
