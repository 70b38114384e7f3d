/// Opens a checkpoint: one file, or the files that an index names.
#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/ensure.h"
#include "safetensors/json.h"
#include "safetensors/safetensors.h"

namespace forebay {
namespace {

using namespace safetensors;

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr std::string_view kIndexEnding = ".index.json";
constexpr uint64_t kMaxIndexBytes = 256ull << 20;

using WeightMap = std::map<std::string, std::string>;  // tensor name -> file name

/// A name beside the index, not a way out of its directory.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Result<WeightMap> parse_index(std::string_view text) {
  const nlohmann::json index = TRY(parse_json(text));
  const auto entries = index.find("weight_map");
  if (entries == index.end() || !entries->is_object())
    return Error{Code::kCorrupt, "\"weight_map\": no object"};
  WeightMap files;
  for (const auto& [tensor, file] : entries->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return Error{Code::kCorrupt, fmt::format("tensor {}: in {}, wanted the name of a file beside the index",
                                               quote(tensor), quote(file.dump()))};
    files[tensor] = file.get<std::string>();
  }
  return files;
}

}  // namespace

class SafetensorsReader {
 public:
  explicit SafetensorsReader(Storage& storage) : storage_(storage) {}

  Result<SafetensorsFile> read(const Path& path) {
    if (storage_.exists(path / kSingleName))
      TRY(read_file(path / kSingleName));
    else if (storage_.exists(path / kIndexName))
      TRY(read_indexed(path / kIndexName));
    else if (path.filename().string().ends_with(kIndexEnding))
      TRY(read_indexed(path));
    else
      TRY(read_alone(path));
    return std::move(out_);
  }

 private:
  Result<void> read_alone(const Path& path) {
    Result<void> read = read_file(path);
    if (read || read.error().code != Code::kInvalidArgument) return read;
    // Storage refused to open it as a file.
    return Error{Code::kInvalidArgument,
                 fmt::format("{}; in a directory, {} or {}", read.error().message, kSingleName, kIndexName)};
  }

  Result<void> read_file(const Path& path) {
    const std::unique_ptr<ReadableFile> file = TRY(storage_.open(path));
    std::shared_ptr<Mapping> mapping = TRY(file->map());
    const std::span<const std::byte> bytes = mapping->bytes();
    std::map<std::string, std::string> metadata;
    Result<std::vector<SafeTensor>> tensors = parse_safetensors_header(bytes, bytes.size(), &metadata);
    if (!tensors) return std::move(tensors).error().in(path.string());
    const int index = static_cast<int>(out_.maps_.size());
    for (SafeTensor& tensor : *tensors) {
      tensor.file = index;
      if (!out_.index_.try_emplace(tensor.name, out_.tensors_.size()).second)
        return Error{Code::kCorrupt, fmt::format("{}: tensor {} is in an earlier file too", path.string(),
                                                 quote(tensor.name))};
      out_.tensors_.push_back(std::move(tensor));
    }
    out_.metadata_.merge(metadata);
    out_.maps_.push_back(std::move(mapping));
    return {};
  }

  Result<void> read_indexed(const Path& path) {
    Result<WeightMap> files = read_index(path);
    if (!files) return in_file(std::move(files).error(), path);
    std::set<std::string> names;
    for (const auto& [tensor, name] : *files) names.insert(name);
    const Path directory = path.parent_path();
    for (const std::string& name : names)
      if (!storage_.exists(directory / name))
        return Error{Code::kNotFound, fmt::format("{}: file {} is missing", path.string(), quote(name))};
    for (const std::string& name : names) TRY(read_file(directory / name));

    const std::vector<std::string> order(names.begin(), names.end());
    for (const auto& [name, file] : *files) {
      const SafeTensor* tensor = out_.find(name);
      if (tensor == nullptr || order[static_cast<size_t>(tensor->file)] != file)
        return Error{Code::kCorrupt,
                     fmt::format("{}: tensor {} is not in {}", path.string(), quote(name), quote(file))};
    }
    return {};
  }

  Result<WeightMap> read_index(const Path& path) {
    const std::string text = TRY(read_text(storage_, path, kMaxIndexBytes));
    try {
      return parse_index(text);
    } catch (const std::bad_alloc&) {
      return Error{Code::kOutOfMemory,
                   fmt::format("an index of {} bytes: no memory to hold it", text.size())};
    }
  }

  /// Errors of Storage name the file already.
  static Error in_file(Error error, const Path& path) {
    return error.message.starts_with(path.string()) ? std::move(error) : std::move(error).in(path.string());
  }

  Storage& storage_;
  SafetensorsFile out_;
};

Result<SafetensorsFile> SafetensorsFile::open(Storage& storage, const Path& file_or_directory) {
  return SafetensorsReader(storage).read(file_or_directory);
}

const SafeTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafeTensor& tensor) const {
  ENSURE(tensor.file >= 0 && static_cast<size_t>(tensor.file) < maps_.size(),
         "a tensor of another checkpoint");
  const std::span<const std::byte> file = maps_[static_cast<size_t>(tensor.file)]->bytes();
  ENSURE(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
         "a tensor of another checkpoint");
  return file.subspan(tensor.offset, tensor.bytes);
}

}  // namespace forebay
