#include "train/grpo/settings.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace forebay::train {
namespace {

constexpr std::pair<std::string_view, Cvc> kCvcWords[] = {
    {"none", Cvc::kNone}, {"ce", Cvc::kCrossEntropy}, {"dc", Cvc::kSquare}, {"dc-shaped", Cvc::kShaped}};
constexpr std::pair<std::string_view, MaskScope> kScopeWords[] = {
    {"step", MaskScope::kStep}, {"micro-batch", MaskScope::kMicroBatch}, {"token", MaskScope::kToken}};
constexpr std::pair<std::string_view, Publish> kPublishWords[] = {{"staged", Publish::kStaged},
                                                                  {"at-once", Publish::kAtOnce}};
constexpr std::pair<std::string_view, SamplerWeights> kWeightsWords[] = {
    {"f32", SamplerWeights::kF32}, {"bf16-delta", SamplerWeights::kBf16Delta}};
constexpr std::pair<std::string_view, Backend> kBackendWords[] = {
    {"tcp", Backend::kTcp}, {"gloo", Backend::kGloo}, {"nccl", Backend::kNccl}};
constexpr std::pair<std::string_view, Gain> kGainWords[] = {{"exact", Gain::kExact},
                                                            {"keep-rate", Gain::kKeepRate}};

template <typename E, size_t N>
std::span<const std::pair<std::string_view, E>> words_of(const std::pair<std::string_view, E> (&words)[N]) {
  return words;
}

void get_int(Recipe& recipe, std::string_view key, int& value, int64_t min, int64_t max) {
  int64_t wide = value;
  recipe.get(key, wide, min, max);
  value = static_cast<int>(wide);
}

void read_model(Recipe& r, GrpoSettings& s) {
  r.get("model.path", s.model.path);
  r.get("model.tokenizer", s.model.tokenizer);
  get_int(r, "model.hidden", s.model.toy.d_model, 8, 4096);
  get_int(r, "model.blocks", s.model.toy.n_blocks, 1, 64);
  get_int(r, "model.heads", s.model.toy.n_heads, 1, 64);
  get_int(r, "model.kv_heads", s.model.toy.n_kv_heads, 1, 64);
  get_int(r, "model.head_dim", s.model.toy.head_dim, 4, 256);
  get_int(r, "model.ffn", s.model.toy.d_ffn, 8, 16384);
  r.get("model.tied", s.model.toy.tied_embeddings);
  r.get("model.seed", s.model.seed, 0, int64_t{1} << 62);
  r.get("task.name", s.task.name);
  r.get("task.seed", s.task.seed, 0, int64_t{1} << 62);
  r.get("task.repeat_first", s.task.repeat_first);
  r.get("sft.steps", s.sft.steps, 0, 1'000'000);
  r.get("sft.batch", s.sft.batch, 1, 65536);
  r.get("sft.lr", s.sft.lr, 0, 1);
}

void read_objective(Recipe& r, GrpoSettings& s) {
  r.get("grpo.prompts", s.grpo.prompts, 1, 65536);
  r.get("grpo.answers", s.grpo.answers, 1, 1024);
  r.get("grpo.max_tokens", s.grpo.max_tokens, 0, 65536);
  r.get("grpo.lr", s.grpo.lr, 0, 1);
  r.get("grpo.warmup", s.grpo.warmup, 0, 1'000'000);
  r.get("grpo.weight_decay", s.grpo.weight_decay, 0, 1);
  r.get("grpo.clip_norm", s.grpo.clip_norm, 0, 1e9);
  r.get("grpo.ticks", s.grpo.ticks, 1, 64);
  r.get("grpo.divide_by_std", s.advantage.divide_by_std);
  r.get("grpo.drop_equal", s.advantage.drop_equal);
  r.get("grpo.clip_low", s.objective.clip_low, 0, 1);
  r.get("grpo.clip_high", s.objective.clip_high, 0, 1000);
  r.get("grpo.beta", s.objective.beta, 0, 100);
  r.get("cvc.mode", s.objective.cvc, words_of(kCvcWords));
  r.get("cvc.lambda", s.objective.cvc_lambda, 0, 1000);
  r.get("cvc.delta", s.objective.cvc_delta, 0, 1000);
  r.get("importance.weigh", s.importance.weigh);
  r.get("importance.truncation", s.importance.truncation, 1, 1e6);
  r.get("importance.normalise", s.importance.normalise);
  r.get("controller.enabled", s.controller.enabled);
  r.get("controller.table", s.controller.table);
  r.get("controller.table_file", s.controller.table_file);
  r.get("controller.kappa", s.controller.kappa, 0, 1000);
  r.get("controller.eta", s.controller.options.eta, 0, 1000);
  r.get("controller.beta_min", s.controller.options.beta_min, 0, 100);
  r.get("controller.beta_max", s.controller.options.beta_max, 0, 100);
  r.get("brake.enabled", s.brake.enabled);
  r.get("brake.factor", s.brake.options.factor, 0, 1);
  r.get("brake.over_median", s.brake.options.over_median, 1, 1000);
  r.get("brake.floor", s.brake.options.floor, 0, 1000);
}

void read_wire(Recipe& r, GrpoSettings& s) {
  r.get("pipeline.stages", s.pipeline.stages, 1, 64);
  r.get("pipeline.micro_batch", s.pipeline.micro_batch, 1, 65536);
  CodecOptions& c = s.wire.codec;
  r.get("wire.codec", c.name);
  r.get("wire.keep", c.keep, 0, 1);
  r.get("wire.k", c.k, 0, 1 << 20);
  r.get("wire.scope", c.scope, words_of(kScopeWords));
  r.get("wire.gain", c.gain, words_of(kGainWords));
  get_int(r, "wire.bits", c.bits, 1, 8);
  r.get("wire.group", c.group, 1, 1 << 20);
  r.get("wire.share", c.share);
  r.get("wire.rank", c.rank, 0, 1 << 20);
  r.get("wire.k_residual", c.k_residual, 0, 1 << 20);
  r.get("wire.gamma_max", c.gamma_max, 0, 1e9);
  r.get("wire.accumulate", c.accumulate);
  r.get("wire.refresh_every", s.wire.refresh_every, 1, 1'000'000);
  r.get("wire.publish", s.wire.publish, words_of(kPublishWords));
  r.get("anchor.every", s.anchor.every, 0, 1'000'000);
  r.get("anchor.mu", s.anchor.mu, 0, 1);
  r.get("anchor.step", s.anchor.step, 0, 1);
  r.get("anchor.masked", s.anchor.masked);
  r.get("anchor.mask_rank", s.anchor.mask.rank, 0, 1);
  r.get("anchor.mask_alpha", s.anchor.mask.alpha, 0, 1);
}

void get_time(Recipe& r, std::string_view key, Milliseconds& time) {
  double seconds = static_cast<double>(time.count()) / 1000;
  r.get(key, seconds, 0.001, 1e6);
  time = Milliseconds(static_cast<int64_t>(std::llround(seconds * 1000)));
}

void read_link(Recipe& r, const std::string& section, LinkOptions& link) {
  r.get(section + ".bytes_per_second", link.bytes_per_second, 0, 1e15);
  r.get(section + ".latency_s", link.latency_s, 0, 1e6);
  r.get(section + ".jitter_s", link.jitter_s, 0, 1e6);
  r.get(section + ".loss", link.loss, 0, 1);
  r.get(section + ".resend_s", link.resend_s, 0, 1e6);
  r.get(section + ".packet_bytes", link.packet_bytes, 1, 1 << 20);
}

void read_comm(Recipe& r, CommOptions& comm) {
  r.get("pipeline.backend", comm.backend, words_of(kBackendWords));
  get_time(r, "timeouts.pg_s", comm.timeouts.pg);
  get_time(r, "timeouts.step_s", comm.timeouts.step);
  get_time(r, "timeouts.init_s", comm.timeouts.init);
  get_time(r, "timeouts.silence_s", comm.timeouts.silence);
  read_link(r, "link", comm.pipe_link);
  read_link(r, "anchor_link", comm.anchor_link);
}

void read_run(Recipe& r, GrpoSettings& s) {
  r.get("probe.every", s.probe.every, 0, 1'000'000);
  r.get("ledger.every", s.ledger.every, 0, 1'000'000);
  r.get("validation.every", s.validation.every, 0, 1'000'000);
  r.get("validation.items", s.validation.items, 1, 1'000'000);
  r.get("sampler.threads", s.sampler.threads, 0, 1024);
  r.get("sampler.sequences", s.sampler.sequences, 1, 65536);
  r.get("sampler.context", s.sampler.context, 2, 1 << 20);
  r.get("sampler.window", s.sampler.window, 1, 65536);
  r.get("sampler.weights", s.sampler.weights, words_of(kWeightsWords));
  r.get("sampler.refresh_every", s.sampler.refresh_every, 1, 1'000'000);
  r.get("run.steps", s.run.steps, 0, 10'000'000);
  r.get("run.checkpoint_every", s.run.checkpoint_every, 1, 10'000'000);
  r.get("run.seed", s.run.seed, 0, int64_t{1} << 62);
  r.get("run.device", s.run.device);
  r.get("run.threads", s.run.threads, 0, 1024);
  r.get("run.bf16", s.run.bf16);
}

}  // namespace

Result<GrpoSettings> GrpoSettings::read(Recipe& recipe, int n_processes) {
  GrpoSettings s;
  s.pipeline.stages = n_processes;
  read_model(recipe, s);
  read_objective(recipe, s);
  read_wire(recipe, s);
  read_comm(recipe, s.comm);
  read_run(recipe, s);
  TRY(recipe.finish());
  const auto wrong = [&](std::string text) {
    return Error{Code::kInvalidArgument, recipe.name() + ": " + std::move(text)};
  };
  s.wire.codec.seed = static_cast<uint64_t>(s.run.seed);
  s.comm.pipe_link.seed = s.comm.anchor_link.seed = static_cast<uint64_t>(s.run.seed);
  if (n_processes > 1 && s.pipeline.stages != n_processes)
    return wrong(fmt::format("pipeline.stages is {} with {} processes: each has one stage", s.pipeline.stages,
                             n_processes));
  if (Result<void> link = s.comm.pipe_link.check(); !link) return wrong("[link]: " + link.error().message);
  if (Result<void> link = s.comm.anchor_link.check(); !link)
    return wrong("[anchor_link]: " + link.error().message);
  if (Result<void> times = s.comm.timeouts.check(); !times)
    return wrong("[timeouts]: " + times.error().message);
  if (s.anchor.masked && s.anchor.every == 0)
    return wrong("anchor.masked with anchor.every 0: the mask is of what the anchor sends");
  if (s.wire.codec.name != "none" && s.pipeline.stages < 2)
    return wrong(
        fmt::format("wire.codec is '{}' with pipeline.stages {}: a codec is between stages, 2 or more",
                    s.wire.codec.name, s.pipeline.stages));
  if (s.controller.enabled && s.controller.table.empty() && s.controller.table_file.empty())
    return wrong(
        "controller.enabled without controller.table or controller.table_file: the setpoint comes from a "
        "control without codecs");
  if (s.controller.enabled && s.probe.every == 0)
    return wrong("controller.enabled with probe.every 0: it acts on what the probe measures");
  if (s.brake.enabled && s.probe.every == 0)
    return wrong("brake.enabled with probe.every 0: it acts on what the probe measures");
  return s;
}

}  // namespace forebay::train
