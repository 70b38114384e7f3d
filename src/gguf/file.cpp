/// Opens a model: one file, or every shard of a split one.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/ensure.h"
#include "gguf/gguf.h"
#include "gguf/split.h"
#include "gguf/text.h"

namespace forebay {

using namespace gguf;

class GgufReader {
 public:
  GgufReader(Storage& storage, const Path& path) : storage_(storage) { file_.path_ = path; }

  Result<GgufFile> read() {
    Shard named = TRY(read_shard(file_.path_));
    Result<int> n_shards = shard_count(named.headers.metadata);
    if (!n_shards) return std::move(n_shards).error().in(file_.path_.string());
    std::vector<Shard> shards;
    if (*n_shards == 1)
      shards.push_back(std::move(named));
    else
      shards = TRY(read_siblings(std::move(named), *n_shards));

    file_.metadata_ = std::move(shards[0].headers.metadata);
    file_.version_ = shards[0].headers.version;
    for (Shard& shard : shards) TRY(add(std::move(shard)));
    return std::move(file_);
  }

 private:
  struct Shard {
    Path path;
    std::shared_ptr<Mapping> mapping;
    GgufHeaders headers;
  };

  Result<Shard> read_shard(const Path& path) {
    Shard shard{path, {}, {}};
    std::unique_ptr<ReadableFile> file = TRY(storage_.open(path));
    shard.mapping = TRY(file->map());
    const std::span<const std::byte> bytes = shard.mapping->bytes();
    Result<GgufHeaders> headers = parse_gguf_headers(bytes, bytes.size());
    if (!headers) return std::move(headers).error().in(path.string());
    shard.headers = *std::move(headers);
    return shard;
  }

  /// All shards in order, `named` among them.
  Result<std::vector<Shard>> read_siblings(Shard named, int n_shards) {
    const std::optional<ShardName> name = parse_shard_name(file_.path_);
    if (!name || name->count != n_shards)
      return Error{
          Code::kInvalidArgument,
          fmt::format("{}: one shard of {} (key 'split.count'), but not named *-0000N-of-{:05}.gguf, so the "
                      "others cannot be found",
                      file_.path_.string(), n_shards, n_shards)};
    TRY(check_present(*name));

    std::vector<Shard> shards;
    for (int number = 1; number <= n_shards; ++number) {
      if (number == name->number)
        shards.push_back(std::move(named));
      else
        shards.push_back(TRY(read_shard(shard_path(file_.path_, *name, number))));
    }
    uint64_t n_tensors = 0;
    for (const Shard& shard : shards) n_tensors += shard.headers.tensors.size();
    for (int number = 1; number <= n_shards; ++number) {
      const Shard& shard = shards[static_cast<size_t>(number - 1)];
      Result<void> checked = check_shard_keys(shard.headers.metadata, number, n_shards, n_tensors);
      if (!checked) return std::move(checked).error().in(shard.path.string());
    }
    if (!shards[0].headers.metadata.has("split.tensors.count"))
      return Error{Code::kCorrupt,
                   fmt::format("{}: key 'split.tensors.count' not found", shards[0].path.string())};
    return shards;
  }

  /// Before anything is read, so that one error names all that is missing.
  Result<void> check_present(const ShardName& name) {
    constexpr int kMaxListed = 5;
    int n_missing = 0;
    std::string list;
    for (int number = 1; number <= name.count; ++number) {
      const Path path = shard_path(file_.path_, name, number);
      if (storage_.exists(path)) continue;
      if (++n_missing > kMaxListed) continue;
      list += (n_missing > 1 ? ", " : "") + path.string();
    }
    if (n_missing == 0) return {};
    if (n_missing > kMaxListed) list += ", ...";
    return Error{Code::kNotFound, fmt::format("{}: {} of {} shards missing: {}", file_.path_.string(),
                                              n_missing, name.count, list)};
  }

  Result<void> add(Shard shard) {
    const int index = file_.n_shards();
    for (TensorInfo& tensor : shard.headers.tensors) {
      tensor.shard = index;
      const auto [at, is_new] = file_.index_.try_emplace(tensor.name, file_.tensors_.size());
      if (!is_new)
        return Error{Code::kCorrupt,
                     fmt::format("{}: tensor {} in shard {} and again in shard {}", file_.path_.string(),
                                 quote(tensor.name), file_.tensors_[at->second].shard + 1, index + 1)};
      file_.tensors_.push_back(std::move(tensor));
    }
    file_.file_bytes_ += shard.mapping->bytes().size();
    file_.maps_.push_back(std::move(shard.mapping));
    file_.shard_paths_.push_back(std::move(shard.path));
    return {};
  }

  Storage& storage_;
  GgufFile file_;
};

Result<GgufFile> GgufFile::open(Storage& storage, const Path& path) {
  return GgufReader(storage, path).read();
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

std::span<const std::byte> GgufFile::bytes(const TensorInfo& tensor) const {
  ENSURE(tensor.shard >= 0 && tensor.shard < n_shards(), "a tensor of another file");
  const std::span<const std::byte> file = maps_[static_cast<size_t>(tensor.shard)]->bytes();
  ENSURE(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
         "a tensor of another file");
  return file.subspan(tensor.offset, tensor.bytes);
}

}  // namespace forebay
