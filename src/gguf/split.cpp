#include "gguf/split.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace forebay::gguf {
namespace {

constexpr uint64_t kMaxShards = 99999;
constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr size_t kDigits = 5;

std::optional<int> take_number_from_end(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  text.remove_suffix(kDigits);
  int number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

bool take_from_end(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<ShardName> parse_shard_name(const Path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  if (!take_from_end(rest, kExtension)) return std::nullopt;
  const std::optional<int> count = take_number_from_end(rest);
  if (!count || !take_from_end(rest, kOf)) return std::nullopt;
  const std::optional<int> number = take_number_from_end(rest);
  if (!number || !take_from_end(rest, "-") || *number < 1 || *number > *count) return std::nullopt;
  return ShardName{std::string(rest), *number, *count};
}

Path shard_path(const Path& path, const ShardName& name, int number) {
  return path.parent_path() /
         fmt::format("{}-{:05}{}{:05}{}", name.prefix, number, kOf, name.count, kExtension);
}

Result<int> shard_count(const GgufMetadata& metadata) {
  const uint64_t count = TRY(metadata.get_uint_or("split.count", 1));
  if (count > kMaxShards)
    return Error{Code::kCorrupt, fmt::format("key 'split.count': {}, wanted {} at most", count, kMaxShards)};
  return std::max(static_cast<int>(count), 1);
}

Result<void> check_shard_keys(const GgufMetadata& metadata, int number, int count, uint64_t n_tensors) {
  const auto check = [&](std::string_view key, uint64_t wanted) -> Result<void> {
    const uint64_t seen = TRY(metadata.get_uint(key));
    if (seen == wanted) return {};
    return Error{Code::kCorrupt,
                 fmt::format("key '{}': {}, wanted {} (shard {} of {})", key, seen, wanted, number, count)};
  };
  TRY(check("split.count", static_cast<uint64_t>(count)));
  TRY(check("split.no", static_cast<uint64_t>(number - 1)));
  if (metadata.has("split.tensors.count")) TRY(check("split.tensors.count", n_tensors));
  return {};
}

}  // namespace forebay::gguf
