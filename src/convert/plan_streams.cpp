#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "convert/ngram_hash.h"
#include "convert/tensor_plan.h"

namespace forebay::convert {
namespace {

/// The number in a shard's name behind the common prefix: ".7.weight", "_7.weight", ".weight.7". Nothing for
/// names with no number, or several.
std::optional<uint64_t> shard_number(std::string_view rest) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto first = std::ranges::find_if(rest, is_digit);
  const auto last = std::find_if_not(first, rest.end(), is_digit);
  if (first == last || std::find_if(last, rest.end(), is_digit) != rest.end()) return std::nullopt;
  uint64_t number = 0;
  if (std::from_chars(first, last, number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

Result<void> TensorPlan::streams(const std::string& to, const std::string& from, bool has_inject) {
  const uint64_t wide = config_.wide(), rank = config_.streams.low_rank;
  TRY(norm(to + "_norm.weight", from + "hc_norm.weight", wide));
  TRY(matrix(to + "_down.weight", from + "input_mix_weight_down.weight", wide, rank));
  TRY(matrix(to + "_up.weight", from + "input_mix_weight_up.weight", rank, wide));
  if (!has_inject) return {};
  return matrix(to + "_inject.weight", from + "block_inject_weight.weight", wide, config_.streams.n_streams,
                TensorRole::kStructure);
}

Result<void> TensorPlan::ngram_table() {
  const std::string name = fmt::format("layers.{}.ple.ple_embedding.ngram_embedding", config_.ngram.block);
  const uint64_t width = config_.ngram.row_width(), n_rows = ngram_table_rows(config_.ngram, config_.n_vocab);
  if (checkpoint_.has(name + ".weight"))
    return matrix("per_layer_token_embd.weight", name + ".weight", width, n_rows, TensorRole::kBulk);

  // Shards are joined in the order of their numbers.
  std::vector<std::pair<uint64_t, std::string>> shards;
  for (const std::string& shard : checkpoint_.names_from(name)) {
    const auto number = shard_number(std::string_view(shard).substr(name.size()));
    if (!number)
      return Error{Code::kUnsupported,
                   fmt::format("tensor {}: wanted one number, that of an n-gram table's shard",
                               checkpoint_.full_name(shard))};
    shards.emplace_back(*number, shard);
  }
  std::ranges::sort(shards);
  std::vector<WeightRows> parts;
  uint64_t n_seen = 0;
  for (const auto& [number, shard] : shards) {
    if (number != parts.size())
      return Error{Code::kNotFound, fmt::format("n-gram table: the shard behind {} is {}, wanted number {}",
                                                n_seen, checkpoint_.full_name(shard), parts.size())};
    const std::span<const uint64_t> shape = checkpoint_.shape_of(shard);
    const uint64_t rows = shape.empty() ? 0 : shape[0];
    parts.push_back(TRY(checkpoint_.take(shard, {rows, width})));
    n_seen += rows;
  }
  if (parts.empty())
    return Error{Code::kNotFound, fmt::format("tensor {}.weight is missing, wanted [{}, {}]",
                                              checkpoint_.full_name(name), n_rows, width)};
  if (n_seen != n_rows)
    return Error{Code::kCorrupt,
                 fmt::format("n-gram table: {} rows in {} shards, wanted {}", n_seen, parts.size(), n_rows)};
  add("per_layer_token_embd.weight", {width, n_rows}, TensorRole::kBulk, RowSource(std::move(parts)));
  return {};
}

Result<void> TensorPlan::ngram_injection(const std::string& to, const std::string& from) {
  const uint64_t in = config_.ngram.embedding_width, wide = config_.wide();
  TRY(matrix(to + "ple_key.weight", from + "key_proj.weight", in, wide));
  TRY(matrix(to + "ple_value.weight", from + "value_proj.weight", in, config_.d_model));
  TRY(norm(to + "ple_norm_key.weight", from + "norm_key.weight", wide));
  TRY(norm(to + "ple_norm_query.weight", from + "norm_query.weight", wide));
  TRY(norm(to + "ple_norm_conv.weight", from + "norm_conv.weight", wide));
  return matrix(to + "ple_conv1d.weight", from + "conv1d.weight", config_.ngram.conv_kernel, wide,
                TensorRole::kStructure);
}

}  // namespace forebay::convert
