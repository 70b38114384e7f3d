#include "synth/geometry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace forebay::synth {
namespace {

using convert::CheckpointConfig;
using convert::Family;

// The published table has 320 million rows; these are enough that few of them are read twice.
constexpr uint64_t kNgramRows = 10'000'000;

CheckpointConfig base(Family family, const char* architecture, uint64_t n_blocks, uint64_t d_model,
                      uint64_t n_vocab) {
  CheckpointConfig c;
  c.family = family;
  c.architecture = architecture;
  c.n_blocks = n_blocks;
  c.d_model = d_model;
  c.n_vocab = n_vocab;
  c.rms_eps = 1e-6;
  return c;
}

/// What the hybrid families share: a quarter of 256-wide heads is rotated, every fourth block is attention.
void make_hybrid(CheckpointConfig& c) {
  c.context_length = 262144;
  c.rope = {.n_rot = 64, .theta = 1e7, .sections = {}, .scaling = {}};
  c.attention_interval = 4;
}

Geometry qwen4exp() {
  CheckpointConfig c = base(Family::kQwen4Exp, "qwen4exp", 48, 2560, 248320);
  make_hybrid(c);
  c.attention = {.n_heads = 24, .n_kv_heads = 2, .head_dim = 256};
  c.rope.sections = {11, 11, 10};
  c.gated_delta = {.n_k_heads = 16, .n_v_heads = 48, .k_dim = 128, .v_dim = 128, .conv_kernel = 4};
  c.experts = {.n_experts = 512, .n_used = 10, .width = 640, .shared_width = 640};
  c.streams = {.n_streams = 4, .low_rank = 320};
  c.indexer = {.n_heads = 4, .head_dim = 128, .budget_tokens = 2048, .block_tokens = 4};
  c.ngram = {.block = 1,
             .ngram_size = 3,
             .heads_per_ngram = 8,
             .conv_kernel = 4,
             .embedding_width = 2560,
             .vocab_base = 20'000'000,
             .row_multiple = 128,
             .seed = 1234,
             .eos = 248044,
             .image_token = std::nullopt};
  return {"qwen3.8-flash-next", "Qwen3.8 Flash Next", c, kNgramRows};
}

Geometry qwen3next() {
  CheckpointConfig c = base(Family::kQwen3Next, "qwen3next", 48, 2048, 151936);
  make_hybrid(c);
  c.attention = {.n_heads = 16, .n_kv_heads = 2, .head_dim = 256};
  c.gated_delta = {.n_k_heads = 16, .n_v_heads = 32, .k_dim = 128, .v_dim = 128, .conv_kernel = 4};
  c.experts = {.n_experts = 512, .n_used = 10, .width = 512, .shared_width = 512};
  return {"qwen3-next-80b", "Qwen3 Next 80B A3B", c};
}

Geometry qwen35moe() {
  CheckpointConfig c = base(Family::kQwen35Moe, "qwen35moe", 40, 2048, 248320);
  make_hybrid(c);
  c.attention = {.n_heads = 16, .n_kv_heads = 2, .head_dim = 256};
  c.rope.sections = {11, 11, 10};
  c.gated_delta = {.n_k_heads = 16, .n_v_heads = 32, .k_dim = 128, .v_dim = 128, .conv_kernel = 4};
  c.experts = {.n_experts = 256, .n_used = 8, .width = 512, .shared_width = 512};
  return {"qwen3.5-35b-a3b", "Qwen3.5 35B A3B", c};
}

Geometry qwen3moe() {
  CheckpointConfig c = base(Family::kQwen3Moe, "qwen3moe", 48, 2048, 151936);
  c.context_length = 40960;
  c.attention = {.n_heads = 32, .n_kv_heads = 4, .head_dim = 128};
  c.rope = {.n_rot = 128, .theta = 1e6, .sections = {}, .scaling = {}};
  c.experts = {.n_experts = 128, .n_used = 8, .width = 768};
  return {"qwen3-30b-a3b", "Qwen3 30B A3B", c};
}

std::vector<Geometry> all_geometries() {
  return {qwen4exp(), qwen3next(), qwen35moe(), qwen3moe()};
}

Error wrong(std::string_view what, uint64_t seen, std::string_view wanted) {
  return {Code::kInvalidArgument, fmt::format("{}: {}, wanted {}", what, seen, wanted)};
}

Result<void> check(const Geometry& g) {
  const CheckpointConfig& c = g.config;
  // Rows of 32 weights are the smallest that quantised types hold.
  for (const auto& [what, width] :
       {std::pair("width", c.d_model), std::pair("expert width", c.experts.width),
        std::pair("query heads x head width", c.attention.n_heads * c.attention.head_dim)})
    if (width == 0 || width % 32 != 0) return wrong(what, width, "a multiple of 32");
  if (c.experts.shared_width % 32 != 0)
    return wrong("shared width", c.experts.shared_width, "a multiple of 32");
  if (c.experts.n_used < 1 || c.experts.n_used > std::min<uint64_t>(c.experts.n_experts, 64))
    return wrong("experts used by a token", c.experts.n_used,
                 fmt::format("1 to {}, of {} experts", std::min<uint64_t>(c.experts.n_experts, 64),
                             c.experts.n_experts));
  if (c.attention.n_kv_heads < 1 || c.attention.n_heads % c.attention.n_kv_heads != 0)
    return wrong("key and value heads", c.attention.n_kv_heads,
                 fmt::format("a divisor of the {} query heads", c.attention.n_heads));
  if (c.attention.head_dim % 8 != 0) return wrong("head width", c.attention.head_dim, "a multiple of 8");
  if (c.is_hybrid()) {
    const convert::GatedDeltaDims& d = c.gated_delta;
    if (d.n_k_heads < 1 || d.n_v_heads % d.n_k_heads != 0)
      return wrong("gated delta value heads", d.n_v_heads,
                   fmt::format("a multiple of {} key heads", d.n_k_heads));
    if (d.value_width() % 32 != 0) return wrong("gated delta width", d.value_width(), "a multiple of 32");
  }
  if (c.family == Family::kQwen4Exp) {
    if (c.streams.low_rank % 32 != 0) return wrong("stream rank", c.streams.low_rank, "a multiple of 32");
    if (c.rope.n_rot > c.indexer.head_dim)
      return wrong("rotated dimensions", c.rope.n_rot,
                   fmt::format("at most the indexer's {}", c.indexer.head_dim));
  }
  return {};
}

/// A quarter of a hybrid's head is rotated; of the pairs, nearly equal parts follow time, height and width.
void set_head_dim(CheckpointConfig& c, uint64_t head_dim) {
  c.rope.n_rot = head_dim * c.rope.n_rot / c.attention.head_dim;
  c.attention.head_dim = head_dim;
  if (c.rope.sections.empty()) return;
  const uint64_t pairs = c.rope.n_rot / 2;
  c.rope.sections = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3};
}

}  // namespace

std::vector<std::string> geometry_names() {
  std::vector<std::string> names;
  for (const Geometry& g : all_geometries()) names.push_back(g.name);
  return names;
}

Result<Geometry> find_geometry(std::string_view name) {
  for (Geometry& g : all_geometries())
    if (g.name == name) return changed(std::move(g), {});
  return Error{Code::kInvalidArgument,
               fmt::format("no geometry '{}', wanted one of {}", name, fmt::join(geometry_names(), ", "))};
}

Result<Geometry> changed(Geometry g, const GeometryChanges& changes) {
  CheckpointConfig& c = g.config;
  const auto set = [](uint64_t& value, const std::optional<uint64_t>& change) {
    value = change.value_or(value);
  };
  if (!c.is_hybrid() &&
      (changes.shared_width || changes.n_delta_key_heads || changes.n_delta_value_heads || changes.delta_dim))
    return Error{Code::kInvalidArgument,
                 fmt::format("{} has no shared expert and no gated delta blocks", c.architecture)};
  if (c.family != Family::kQwen4Exp && (changes.stream_rank || changes.n_ngram_rows))
    return Error{Code::kInvalidArgument,
                 fmt::format("{} has no residual streams and no n-gram table", c.architecture)};
  set(c.n_blocks, changes.n_blocks);
  set(c.d_model, changes.d_model);
  set(c.n_vocab, changes.n_vocab);
  set(c.context_length, changes.context_length);
  set(c.experts.n_experts, changes.n_experts);
  set(c.experts.n_used, changes.n_used);
  set(c.experts.width, changes.expert_width);
  set(c.experts.shared_width, changes.shared_width);
  set(c.attention.n_heads, changes.n_heads);
  set(c.attention.n_kv_heads, changes.n_kv_heads);
  if (changes.head_dim) set_head_dim(c, *changes.head_dim);
  set(c.gated_delta.n_k_heads, changes.n_delta_key_heads);
  set(c.gated_delta.n_v_heads, changes.n_delta_value_heads);
  set(c.gated_delta.k_dim, changes.delta_dim);
  set(c.gated_delta.v_dim, changes.delta_dim);
  set(c.streams.low_rank, changes.stream_rank);
  set(g.n_ngram_rows, changes.n_ngram_rows);

  c.recurrent.assign(c.n_blocks, false);
  if (c.is_hybrid())
    for (uint64_t i = 0; i < c.n_blocks; ++i) c.recurrent[i] = (i + 1) % c.attention_interval != 0;
  // The table is read in a block of its own; a cut above that has none.
  if (c.n_blocks < 2) g.n_ngram_rows = 0;
  if (g.n_ngram_rows == 0)
    c.ngram.block = -1;
  else
    c.ngram.vocab_base = std::max<uint64_t>(2, g.n_ngram_rows / c.ngram.n_heads());
  TRY(check(g));
  return g;
}

}  // namespace forebay::synth
