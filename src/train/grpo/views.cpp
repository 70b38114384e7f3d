#include "train/grpo/views.h"

#include <utility>

#include "train/pipeline/local_runner.h"
#include "train/wire/basis.h"
#include "train/wire/make_codec.h"

namespace forebay::train {

Result<std::unique_ptr<Views>> Views::create(Net& policy, Net& reference, const GrpoSettings& settings) {
  std::unique_ptr<Views> views(new Views(policy, settings));
  const int64_t n_boundaries = settings.pipeline.stages - 1;
  LocalPipeline pipeline{.n_stages = settings.pipeline.stages,
                         .seed = static_cast<uint64_t>(settings.run.seed)};
  if (settings.wire.codec.name != "none") {
    views->codec_ = TRY(make_codec(settings.wire.codec, policy.boundary_width()));
    pipeline.codecs.assign(static_cast<size_t>(n_boundaries), views->codec_.get());
  }
  Views* const self = views.get();
  pipeline.tap = [self](const WireTransfer& t) {
    // Where no bytes are made, those that there would be.
    const int64_t bytes = t.bytes > 0 ? t.bytes
                                      : static_cast<int64_t>(self->codec_->payload_bytes(
                                            t.n_rows, self->policy_net_.boundary_width(), t.leg));
    self->ledger_.record(t.boundary, t.leg, t.n_rows, bytes, t.logical_bits);
  };
  views->policy_ = TRY(make_local_runner(policy, pipeline));
  views->reference_ = TRY(make_local_runner(reference, pipeline));
  return views;
}

ViewEpoch Views::epoch(View view, int64_t step) const {
  const Codec* codec = codec_.get();
  const bool dense = view == View::kDense || codec == nullptr;
  return view_epoch(static_cast<uint64_t>(settings_.run.seed), step,
                    dense ? std::span<const Codec* const>() : std::span<const Codec* const>(&codec, 1));
}

Result<LogProbs> Views::log_probs(Of net, View view, const StepBatch& batch, int64_t step) {
  LogProbs result{torch::empty({batch.n_tokens}, torch::kFloat32), epoch(view, step)};
  Runner& runner = net == Of::kPolicy ? *policy_ : *reference_;
  TRY(runner.forward(batch.micro, view, step, [&](size_t i, const torch::Tensor& logits) {
    const StepBatch::Rows& rows = batch.rows[i];
    result.values.slice(0, rows.first, rows.first + rows.n).copy_(row_log_probs(logits, rows));
  }));
  return result;
}

Result<void> Views::train(const StepBatch& batch, int64_t step, const LogProbs& old,
                          const std::function<torch::Tensor(size_t, const torch::Tensor&)>& loss) {
  TRY(check_view(old.epoch, epoch(View::kCodec, step)));
  return policy_->train(batch.micro, step, [&](size_t i, const torch::Tensor& logits) {
    return loss(i, row_log_probs(logits, batch.rows[i]));
  });
}

Result<int64_t> Views::end_step(int64_t step, bool committed) {
  BasisBank* const bank = codec_ == nullptr ? nullptr : codec_->basis();
  if (bank == nullptr || step % settings_.wire.refresh_every != 0) return 0;
  // A step that was skipped may have trained on nothing, and then has no rows to make a basis from.
  if (!committed) return 0;
  for (int64_t b = 0; b + 1 < settings_.pipeline.stages; ++b) TRY(bank->update(b));
  for (int64_t b = 0; b + 1 < settings_.pipeline.stages; ++b)
    ledger_.record(SideAccount::kRefresh, bank->refresh_bytes(),
                   8.0 * static_cast<double>(bank->refresh_bytes()));
  return bank->activate();
}

WireLedger Views::take_ledger() {
  return std::exchange(ledger_, WireLedger());
}

std::map<std::string, torch::Tensor> Views::state() const {
  return codec_ == nullptr ? std::map<std::string, torch::Tensor>() : codec_->state();
}

Result<void> Views::restore(const std::map<std::string, torch::Tensor>& state) {
  if (codec_ == nullptr) return {};
  return codec_->restore(state);
}

}  // namespace forebay::train
