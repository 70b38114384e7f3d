#include "model/model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "core/mapped_memory.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/rms_norm.h"
#include "model/arch/arch.h"
#include "model/tensor_role.h"

namespace forebay {

struct Model::Impl {
  const GgufFile* file;
  const GgufFile* mtp_file;
  KernelContext* kernels;
  MemoryBudget* budget;
  ModelConfig config;
  Weights weights;
  double trunk_seconds = 0;
  Scratch scratch;
  std::unique_ptr<ExpertSource> experts;
  ExpertCache* cache = nullptr;  // `experts`, when it is one
  int64_t max_window = 0;
  Buffer logits;  // grows to the most rows ever asked for
  Batch batch;

  KvType kv = KvType::kF32;
  RoutingOptions routing;
  RouteObserver* trace = nullptr;

  LayerContext layers(bool draft = false) {
    return {*kernels, config, scratch, *experts, routing, trace, draft};
  }
  Result<void> place_experts(Storage& storage, const ModelOptions& options);
  Result<TrunkCopies> copy_trunk(Storage& storage, const GgufFile* draft_file);
  void read_trunk(const GgufFile& from) const;
  Result<void> check(std::span<const Span> window) const;
  void fill_batch(std::span<const Span> window);
  Result<TensorView<float>> logits_for(int64_t rows);
  void final_read(const HyperConnectionWeights& streams, std::span<const float> norm,
                  TensorView<const float> rows_TW, TensorView<float> out_TD);
  Result<void> check_finite(TensorView<const float> rows) const;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelConfig& Model::config() const {
  return impl_->config;
}
const RoutingOptions& Model::routing() const {
  return impl_->routing;
}

int64_t Model::max_window() const {
  return impl_->max_window;
}
ExpertCache* Model::expert_cache() {
  return impl_->cache;
}
uint64_t Model::trunk_copy_bytes() const {
  const TrunkCopies& copies = impl_->weights.copies();
  return copies.trunk.bytes() + copies.draft.bytes();
}
double Model::trunk_copy_seconds() const {
  return impl_->trunk_seconds;
}
uint64_t Model::ngram_bytes() const {
  for (const BlockWeights& block : impl_->weights.blocks)
    if (block.ngram)
      return is_large(*block.ngram)
                 ? impl_->scratch.ngram_pages.size() * kPageBytes
                 : static_cast<uint64_t>(block.ngram->table.n_rows * block.ngram->table.row_stride_bytes);
  return 0;
}
KernelContext& Model::kernels() {
  return *impl_->kernels;
}
bool Model::has_mtp() const {
  return impl_->weights.mtp.has_value();
}

Result<Model> Model::load(Storage& storage, const GgufFile& file, const GgufFile* mtp_file,
                          const ModelOptions& options, KernelContext& ctx, MemoryBudget& budget) {
  if (options.max_window < 1 || options.max_window > 65536)
    return Error{Code::kInvalidArgument,
                 fmt::format("max_window: {}, expected 1 to 65536", options.max_window)};
  auto impl = std::make_unique<Impl>();
  impl->file = &file;
  impl->mtp_file = mtp_file;
  impl->kernels = &ctx;
  impl->budget = &budget;
  impl->kv = options.kv;
  impl->routing = options.routing;
  impl->trace = options.trace;
  impl->config = TRY(ModelConfig::from_gguf(file));
  if (!options.mtp) {
    impl->config.n_mtp_blocks = 0;
  } else if (mtp_file != nullptr) {
    TRY(impl->config.check_draft_head(*mtp_file));
    impl->config.n_mtp_blocks = 1;
  }
  const GgufFile* draft_file = options.mtp ? mtp_file : nullptr;
  TrunkCopies copies;
  if (options.copy_trunk) copies = TRY(impl->copy_trunk(storage, draft_file));
  impl->weights = TRY(Weights::load(file, draft_file, impl->config, budget, std::move(copies)));
  TRY(impl->place_experts(storage, options));
  for (const BlockWeights& block : impl->weights.blocks)
    if (block.ngram && is_large(*block.ngram)) {
      const MatrixView& table = block.ngram->table;
      advise({table.data, static_cast<size_t>(table.n_rows * table.row_stride_bytes)}, MapAdvice::kRandom);
    }
  impl->max_window = options.max_window;
  impl->scratch = TRY(Scratch::allocate(impl->config, impl->weights.mtp.has_value(), options.max_window,
                                        ctx.pool().n_threads(), budget));
  return Model(std::move(impl));
}

Result<TrunkCopies> Model::Impl::copy_trunk(Storage& storage, const GgufFile* draft_file) {
  const auto start = std::chrono::steady_clock::now();
  const TrunkTensors tensors = trunk_tensors(config, *file, draft_file);
  ThreadPool& pool = kernels->pool();
  TrunkCopies copies;
  copies.trunk = TRY(TrunkCopy::read(storage, *file, tensors.trunk, pool, *budget));
  copies.draft = TRY(
      TrunkCopy::read(storage, draft_file != nullptr ? *draft_file : *file, tensors.draft, pool, *budget));
  trunk_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return copies;
}

Result<void> Model::Impl::place_experts(Storage& storage, const ModelOptions& options) {
  if (options.experts == ExpertPlacement::kMapped || weights.experts.empty()) {
    experts = std::make_unique<MappedExperts>(weights.experts);
    return {};
  }
  ExpertStore store = TRY(options.expert_pack.empty()
                              ? ExpertStore::open(storage, weights.experts)
                              : ExpertStore::open_pack(storage, weights.experts, options.expert_pack));
  ExpertCacheOptions cache_options = options.cache;
  if (options.experts == ExpertPlacement::kResident) {
    cache_options.budget_bytes = store.all_slot_bytes();
    cache_options.shelf_bytes = 0;
  }
  std::unique_ptr<ExpertCache> made =
      TRY(ExpertCache::create(std::move(store), config.ffn.n_used, cache_options, *budget));
  cache = made.get();
  experts = std::move(made);
  read_trunk(*file);
  if (mtp_file != nullptr) read_trunk(*mtp_file);
  return {};
}

/// Every token needs all of what is neither an expert nor a row of the n-gram table: read in order now, not
/// page by page during the first token. What was copied is not needed again.
void Model::Impl::read_trunk(const GgufFile& from) const {
  std::set<const std::byte*> elsewhere;
  for (const ExpertPlanes& planes : weights.experts)
    for (const ExpertMatrices* plane : {&planes.gate, &planes.up, &planes.down})
      elsewhere.insert(plane->first.data);
  for (const BlockWeights& block : weights.blocks)
    if (block.ngram) elsewhere.insert(block.ngram->table.data);
  const TrunkCopies& copies = weights.copies();
  const auto copied = [&](const TensorInfo& tensor) {
    return (&from == file && copies.trunk.find(tensor) != nullptr) ||
           (&from == (mtp_file != nullptr ? mtp_file : file) && copies.draft.find(tensor) != nullptr);
  };
  for (const TensorInfo& tensor : from.tensors())
    if (const auto bytes = from.bytes(tensor); !elsewhere.contains(bytes.data()) && !copied(tensor))
      advise(bytes, MapAdvice::kPopulate);
}

Result<SequenceState> Model::new_state(int64_t context) {
  reserve_attention(*impl_->kernels, impl_->config.attention.shape, context);
  return SequenceState::create(impl_->config, context, has_mtp(), impl_->kv, *impl_->budget);
}

Result<void> Model::arm_undo(SequenceState& state) {
  TRY(state.enable_undo(impl_->config, *impl_->budget));
  state.arm_undo();
  return {};
}

Result<void> Model::keep(SequenceState& state, int64_t n) {
  return state.keep(*impl_->kernels, impl_->config, n);
}

Result<void> Model::Impl::check(std::span<const Span> window) const {
  int64_t rows = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    const Span& span = window[i];
    const auto n = static_cast<int64_t>(span.tokens.size());
    if (n == 0) return Error{Code::kInvalidArgument, fmt::format("window: span {} has no tokens", i)};
    for (int32_t token : span.tokens)
      if (token < 0 || token >= config.n_vocab)
        return Error{Code::kInvalidArgument,
                     fmt::format("token {}: expected 0 to {}", token, config.n_vocab - 1)};
    if (span.state->n_cells() + n > span.state->context())
      return Error{Code::kInvalidArgument, fmt::format("context: {} tokens in the sequence and {} "
                                                       "more, but it was created for {}",
                                                       span.state->n_cells(), n, span.state->context())};
    if (span.state->undo() != nullptr && n > WindowUndo::kMaxRows)
      return Error{Code::kInvalidArgument, fmt::format("window: {} tokens that can be undone, at most {} can",
                                                       n, WindowUndo::kMaxRows)};
    for (size_t j = 0; j < i; ++j)
      if (window[j].state == span.state)
        return Error{Code::kInvalidArgument,
                     fmt::format("window: spans {} and {} are of one sequence", j, i)};
    rows += n;
  }
  if (rows < 1 || rows > max_window)
    return Error{Code::kInvalidArgument,
                 fmt::format("window: {} tokens, expected 1 to {}", rows, max_window)};
  return {};
}

void Model::Impl::fill_batch(std::span<const Span> window) {
  batch.n_rows = 0;
  batch.parts.clear();
  batch.positions.clear();
  for (const Span& span : window) {
    const auto n = static_cast<int64_t>(span.tokens.size());
    batch.parts.push_back({span.state, batch.n_rows, n, span.state->n_cells(), span.tokens, span.prompt,
                           std::min(span.n_exact, n), span.recurrence});
    for (int64_t i = 0; i < n; ++i) batch.positions.push_back(span.state->n_cells() + i);
    batch.n_rows += n;
  }
  scratch.rope.fill(batch.positions, config.attention.n_rot, config.attention.rope_theta);
}

Result<TensorView<float>> Model::Impl::logits_for(int64_t rows) {
  const uint64_t bytes = static_cast<uint64_t>(rows) * config.n_vocab * sizeof(float);
  if (logits.bytes() < bytes) {
    logits = Buffer();
    logits = TRY(Buffer::allocate(*budget, bytes, "logits"));
  }
  return TensorView<float>(logits.as<float>().data(), rows, config.n_vocab);
}

void Model::Impl::final_read(const HyperConnectionWeights& streams, std::span<const float> norm,
                             TensorView<const float> rows, TensorView<float> out) {
  if (config.family == Family::kQwen4Exp) {
    LayerContext lc = layers();
    read_hyper_connection(lc, streams, rows, out);
  } else {
    rms_norm(*kernels, rows, norm, config.rms_eps, out);
  }
}

Result<void> Model::Impl::check_finite(TensorView<const float> rows) const {
  for (int64_t t = 0; t < rows.rows; ++t) {
    // A NaN or infinity anywhere survives the sum of x - x.
    float poison = 0;
    for (int64_t i = 0; i < rows.cols; ++i) poison += rows.row(t)[i] - rows.row(t)[i];
    if (poison == 0.0f) continue;
    std::string culprit = Weights::find_non_finite(*file);
    if (culprit.empty() && mtp_file != nullptr) culprit = Weights::find_non_finite(*mtp_file);
    return Error{Code::kCorrupt,
                 culprit.empty()
                     ? fmt::format("logits of row {} are not finite though all weights are", t)
                     : fmt::format("{}: weights that are not finite (the logits are not either)", culprit)};
  }
  return {};
}

Result<ForwardOutput> Model::forward(std::span<const Span> window) {
  Impl& m = *impl_;
  TRY(m.check(window));
  int64_t n_logits = 0;
  for (const Span& span : window)
    n_logits += span.logits == LogitRows::kAll ? static_cast<int64_t>(span.tokens.size())
                                               : (span.logits == LogitRows::kLast ? 1 : 0);
  const TensorView<float> logits = TRY(m.logits_for(n_logits));

  m.fill_batch(window);
  LayerContext lc = m.layers();
  const TensorView<float> residual = m.scratch.residual_TW.slice_rows(0, m.batch.n_rows);
  // A pass that fails half-way has moved some layers' state and not others': nothing of it can be kept.
  const auto fail = [&](Error error) {
    for (const Span& span : window) span.state->reset();
    return error;
  };
  Result<void> ran = m.config.family == Family::kQwen4Exp
                         ? run_hyper_blocks(lc, m.batch, m.weights, residual)
                         : run_prenorm_blocks(lc, m.batch, m.weights, residual);
  if (!ran) return fail(std::move(ran).error());
  for (const Batch::Part& part : m.batch.parts) part.state->advance(part.tokens);

  // The rows that get logits, side by side.
  int64_t row = 0;
  const size_t wide_bytes = static_cast<size_t>(m.config.wide()) * sizeof(float);
  for (size_t i = 0; i < window.size(); ++i) {
    const Batch::Part& part = m.batch.parts[i];
    const int64_t n =
        window[i].logits == LogitRows::kAll ? part.n_rows : (window[i].logits == LogitRows::kLast ? 1 : 0);
    for (int64_t r = part.n_rows - n; r < part.n_rows; ++r)
      std::memcpy(m.scratch.final_TW.row(row++), residual.row(part.first_row + r), wide_bytes);
  }
  const TensorView<float> final_rows = m.scratch.final_TD.slice_rows(0, n_logits);
  if (n_logits > 0) {
    m.final_read(m.weights.final_streams, m.weights.final_norm, m.scratch.final_TW.slice_rows(0, n_logits),
                 final_rows);
    matmul(*m.kernels, m.weights.head, final_rows, logits);
  }
  // Single-stream draft heads read the normed hidden state, qwen4exp's the streams themselves.
  if (m.weights.mtp && m.config.family != Family::kQwen4Exp)
    rms_norm(*m.kernels, residual, m.weights.final_norm, m.config.rms_eps, residual);

  if (Result<void> finite = m.check_finite(logits); !finite) return fail(std::move(finite).error());
  return ForwardOutput{logits, final_rows, residual};
}

Result<TensorView<const float>> Model::head(TensorView<const float> rows) {
  Impl& m = *impl_;
  if (rows.rows < 1 || rows.rows > m.max_window || rows.cols != m.config.d_model)
    return Error{Code::kInvalidArgument, fmt::format("head: {} rows of {}, expected 1 to {} of {}", rows.rows,
                                                     rows.cols, m.max_window, m.config.d_model)};
  const TensorView<float> logits = TRY(m.logits_for(rows.rows));
  matmul(*m.kernels, m.weights.head, rows, logits);
  TRY(m.check_finite(logits));
  return TensorView<const float>(logits);
}

Result<ForwardOutput> Model::draft(SequenceState& state, TensorView<const float> hidden,
                                   std::span<const int32_t> next_tokens, LogitRows rows) {
  Impl& m = *impl_;
  if (!has_mtp()) return Error{Code::kUnsupported, "draft: this model file has no MTP head"};
  const auto T = static_cast<int64_t>(next_tokens.size());
  if (T < 1 || T > m.max_window || hidden.rows != T || hidden.cols != m.config.wide())
    return Error{Code::kInvalidArgument, fmt::format("draft: {} tokens for {} hidden rows of {}, "
                                                     "expected as many, up to {}",
                                                     T, hidden.rows, hidden.cols, m.max_window)};
  for (int32_t token : next_tokens)
    if (token < 0 || token >= m.config.n_vocab)
      return Error{Code::kInvalidArgument,
                   fmt::format("token {}: expected 0 to {}", token, m.config.n_vocab - 1)};
  if (state.n_mtp_cells() + T > state.context())
    return Error{Code::kInvalidArgument, fmt::format("context: {} draft rows and {} more, but the "
                                                     "sequence was created for {}",
                                                     state.n_mtp_cells(), T, state.context())};
  const int64_t n_logits = rows == LogitRows::kAll ? T : (rows == LogitRows::kLast ? 1 : 0);
  const TensorView<float> logits = TRY(m.logits_for(n_logits));

  m.batch.n_rows = T;
  m.batch.parts.assign(1, {&state, 0, T, state.n_mtp_cells(), next_tokens, false, 0});
  m.batch.positions.clear();
  for (int64_t i = 0; i < T; ++i) m.batch.positions.push_back(state.n_mtp_cells() + i);
  m.scratch.rope.fill(m.batch.positions, m.config.attention.n_rot, m.config.attention.rope_theta);

  LayerContext lc = m.layers(/*draft=*/true);
  // `hidden` may be the residual of the forward pass before: the block's own residual goes elsewhere.
  const TensorView<float> residual = m.scratch.final_TW.slice_rows(0, T);
  TRY(run_draft_block(lc, m.batch, m.weights, hidden, residual));
  state.advance_mtp(T);

  const TensorView<float> out = m.scratch.final_TD.slice_rows(0, T);
  const MtpWeights& head = *m.weights.mtp;
  m.final_read(head.final_streams, head.final_norm.empty() ? m.weights.final_norm : head.final_norm, residual,
               out);
  if (n_logits > 0) matmul(*m.kernels, m.weights.head, out.slice_rows(T - n_logits, n_logits), logits);
  TRY(m.check_finite(logits));
  return ForwardOutput{logits, out.slice_rows(T - n_logits, n_logits),
                       m.config.family == Family::kQwen4Exp ? residual : out};
}

}  // namespace forebay
