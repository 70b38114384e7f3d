#include "train/fit/settings.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "train/nets/files.h"

namespace forebay::train {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;

void get_int(Recipe& recipe, std::string_view key, int& value, int64_t min, int64_t max) {
  int64_t wide = value;
  recipe.get(key, wide, min, max);
  value = static_cast<int>(wide);
}

void read_sizes(Recipe& recipe, FitSettings& s) {
  // Sizes that both families have are asked for once.
  const bool is_dense = s.family != "qwen4exp";
  int vocabulary = is_dense ? s.dense.n_vocab : s.hyper.n_vocab,
      width = is_dense ? s.dense.d_model : s.hyper.d_model;
  int blocks = is_dense ? s.dense.n_blocks : s.hyper.n_blocks,
      heads = is_dense ? s.dense.n_heads : s.hyper.n_heads;
  int kv_heads = is_dense ? s.dense.n_kv_heads : s.hyper.n_kv_heads;
  int head_dim = is_dense ? s.dense.head_dim : s.hyper.head_dim;
  int64_t context = is_dense ? s.dense.context : s.hyper.context;
  get_int(recipe, "model.vocabulary", vocabulary, 2, 1 << 30);
  get_int(recipe, "model.width", width, 2, 1 << 20);
  get_int(recipe, "model.blocks", blocks, 1, 4095);
  get_int(recipe, "model.heads", heads, 1, 4096);
  get_int(recipe, "model.kv_heads", kv_heads, 1, 4096);
  get_int(recipe, "model.head_dim", head_dim, 2, 4096);
  recipe.get("model.context", context, 1, kMany);
  if (is_dense) {
    s.dense = {vocabulary,
               width,
               blocks,
               heads,
               kv_heads,
               head_dim,
               s.dense.d_ffn,
               context,
               s.family != "qwen2",
               s.dense.tied_embeddings};
    get_int(recipe, "model.ffn_width", s.dense.d_ffn, 1, 1 << 20);
    recipe.get("model.tied", s.dense.tied_embeddings);
    return;
  }
  HyperSizes& h = s.hyper;
  h.n_vocab = vocabulary, h.d_model = width, h.n_blocks = blocks, h.n_heads = heads, h.n_kv_heads = kv_heads;
  h.head_dim = head_dim, h.context = context;
  get_int(recipe, "model.rotated", h.n_rot, 2, 4096);
  get_int(recipe, "model.experts", h.n_experts, 1, 1 << 16);
  get_int(recipe, "model.experts_used", h.n_used, 1, 64);
  get_int(recipe, "model.expert_width", h.d_expert, 1, 1 << 20);
  get_int(recipe, "model.shared_width", h.d_shared, 1, 1 << 20);
  get_int(recipe, "model.streams", h.n_streams, 1, 64);
  get_int(recipe, "model.stream_rank", h.low_rank, 1, 1 << 20);
  get_int(recipe, "model.delta_key_heads", h.n_k_heads, 1, 4096);
  get_int(recipe, "model.delta_value_heads", h.n_v_heads, 1, 4096);
  get_int(recipe, "model.delta_dim", h.delta_dim, 1, 4096);
  get_int(recipe, "model.index_heads", h.index_heads, 1, 256);
  get_int(recipe, "model.index_dim", h.index_dim, 2, 4096);
  recipe.get("model.index_budget", h.index_budget, 1, int64_t{1} << 24);
  get_int(recipe, "model.draft_heads", h.n_mtp_blocks, 0, 1);
  get_int(recipe, "model.ngram_block", h.ngram_block, -1, 4094);
  get_int(recipe, "model.ngram_heads", h.heads_per_ngram, 1, 256);
  recipe.get("model.ngram_rows", h.ngram_base, 2, int64_t{1} << 32);
}

void read_fit(Recipe& recipe, FitOptions& f) {
  recipe.get("fit.steps", f.schedule.steps, 1, kMany);
  recipe.get("fit.batch", f.batch, 1, 1 << 20);
  recipe.get("fit.row_tokens", f.row_tokens, 2, 1 << 24);
  recipe.get("fit.micro_batch", f.micro_batch, 0, 1 << 20);
  constexpr std::array<std::pair<std::string_view, Packing>, 2> kPackings{
      {{"stream", Packing::kStream}, {"whole", Packing::kWhole}}};
  recipe.get("fit.packing", f.packing, std::span<const std::pair<std::string_view, Packing>>(kPackings));
  auto seed = static_cast<int64_t>(f.seed);
  recipe.get("fit.seed", seed, 0, std::numeric_limits<int64_t>::max());
  f.seed = static_cast<uint64_t>(seed);
  recipe.get("fit.lr", f.schedule.peak, 0, 1);
  recipe.get("fit.lr_floor", f.schedule.floor, 0, 1);
  recipe.get("fit.warmup", f.schedule.warmup, 0, kMany);
  recipe.get("fit.beta1", f.adam.beta1, 0, 1);
  recipe.get("fit.beta2", f.adam.beta2, 0, 1);
  recipe.get("fit.eps", f.adam.eps, 0, 1);
  recipe.get("fit.weight_decay", f.adam.weight_decay, 0, 10);
  recipe.get("fit.clip", f.clip, 0, 1e9);
  recipe.get("fit.balance", f.auxiliary.balance, 0, 100);
  recipe.get("fit.indexer", f.auxiliary.indexer, 0, 100);
  recipe.get("fit.draft", f.mtp, 0, 100);
  recipe.get("fit.dense_steps", f.dense_steps, 0, kMany);
  recipe.get("fit.validate_every", f.validate_every, 0, kMany);
  recipe.get("fit.validation_rows", f.validation_rows, 1, kMany);
  recipe.get("fit.checkpoint_every", f.checkpoint_every, 0, kMany);
  recipe.get("fit.save_every", f.save_every, 0, kMany);
}

}  // namespace

FitSettings read_fit_settings(Recipe& recipe) {
  FitSettings s;
  recipe.get("model.from", s.from);
  recipe.get("model.like", s.like);
  recipe.get("model.tokenizer", s.tokenizer);
  if (s.from.empty() && s.like.empty()) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFamilies{
        {{"qwen2", "qwen2"}, {"qwen3", "qwen3"}, {"qwen4exp", "qwen4exp"}}};
    std::string_view family = "qwen3";
    recipe.get("model.family", family,
               std::span<const std::pair<std::string_view, std::string_view>>(kFamilies));
    s.family = family;
    read_sizes(recipe, s);
  }
  recipe.get("data.train", s.train);
  recipe.get("data.validation", s.validation);
  read_fit(recipe, s.fit);
  recipe.get("train.device", s.fit.device);
  constexpr std::array<std::pair<std::string_view, Precision>, 2> kPrecisions{
      {{"f32", Precision::kF32}, {"bf16", Precision::kBF16}}};
  recipe.get("train.precision", s.fit.precision,
             std::span<const std::pair<std::string_view, Precision>>(kPrecisions));
  recipe.get("train.threads", s.threads, 0, 1024);
  recipe.get("train.save_bf16", s.save_bf16);
  return s;
}

Result<std::shared_ptr<Net>> make_model(Storage& storage, const FitSettings& settings) {
  if (!settings.from.empty() && !settings.like.empty())
    return Error{Code::kInvalidArgument,
                 "model.from and model.like: weights and sizes of two models, wanted one"};
  if (!settings.from.empty()) return load_net(storage, settings.from);
  ModelConfig config;
  if (!settings.like.empty())
    config = TRY(read_model_config(storage, settings.like));
  else
    config = settings.family == "qwen4exp" ? hyper_config(settings.hyper) : dense_config(settings.dense);
  return make_net(config, whole_model(config), settings.fit.seed);
}

}  // namespace forebay::train
