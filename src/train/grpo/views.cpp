#include "train/grpo/views.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "train/comm/tensors.h"
#include "train/grpo/bases.h"
#include "train/pipeline/local_runner.h"
#include "train/pipeline/stage_runner.h"
#include "train/wire/make_codec.h"

namespace forebay::train {

Result<std::unique_ptr<Views>> Views::create(Net& policy, Net& reference, const GrpoSettings& settings,
                                             Team& team) {
  std::unique_ptr<Views> views(new Views(policy, settings, team));
  std::vector<Codec*> codecs;
  const torch::Device device = policy.parameters()[0].device();
  if (settings.wire.codec.name != "none") {
    views->codec_ = TRY(make_codec(settings.wire.codec, policy.boundary_width()));
    views->codec_->receive_on(device);
    codecs.assign(static_cast<size_t>(views->n_boundaries()), views->codec_.get());
    if (settings.ledger.every > 0 && views->codec_->basis() != nullptr) {
      views->fresh_ = TRY(make_codec(settings.wire.codec, policy.boundary_width()));
      views->fresh_->receive_on(device);
    }
  }
  Views* const self = views.get();
  const WireTap tap = [self](const WireTransfer& t) {
    self->confinement_.codec_called();
    // Where no bytes are made, those that there would be.
    const int64_t bytes = t.bytes > 0 ? t.bytes
                                      : static_cast<int64_t>(self->codec_->payload_bytes(
                                            t.n_rows, self->policy_net_.boundary_width(), t.leg));
    self->ledger_.record(t.boundary, t.leg, t.n_rows, bytes, t.logical_bits);
  };
  const WireTap meter = [self](const WireTransfer& t) {
    self->received_.record(t.boundary, t.leg, t.n_rows, t.bytes, 0);
  };
  views->policy_ = TRY(views->make_runner(policy, codecs, tap, meter));
  views->reference_ = TRY(views->make_runner(reference, codecs, tap, meter));
  if (team.size() > 1)
    for (Runner* runner : {views->policy_.get(), views->reference_.get()})
      views->stages_.push_back(static_cast<StageRunner*>(runner));
  return views;
}

Views::~Views() = default;

Result<std::unique_ptr<Runner>> Views::make_runner(Net& net, std::vector<Codec*> codecs, WireTap tap,
                                                   WireTap meter) {
  const auto seed = static_cast<uint64_t>(settings_.run.seed);
  if (team_.size() == 1)
    return make_local_runner(net, {.n_stages = settings_.pipeline.stages,
                                   .codecs = std::move(codecs),
                                   .seed = seed,
                                   .tap = std::move(tap)});
  return std::unique_ptr<Runner>(TRY(make_stage_runner(
      net, *team_.pipe(),
      {.codecs = std::move(codecs), .seed = seed, .tap = std::move(tap), .meter = std::move(meter)})));
}

ViewEpoch Views::epoch(View view, int64_t step) const {
  const Codec* codec = codec_.get();
  const bool dense = view == View::kDense || codec == nullptr;
  return view_epoch(static_cast<uint64_t>(settings_.run.seed), step,
                    dense ? std::span<const Codec* const>() : std::span<const Codec* const>(&codec, 1));
}

Result<torch::Tensor> Views::forward(Runner& runner, View view, const StepBatch& batch, int64_t step) {
  torch::Tensor values = torch::zeros({batch.n_tokens}, torch::kFloat32);
  TRY(runner.forward(batch.micro, view, step, [&](size_t i, const torch::Tensor& logits) {
    const StepBatch::Rows& rows = batch.rows[i];
    values.slice(0, rows.first, rows.first + rows.n).copy_(row_log_probs(logits, rows));
  }));
  TRY(team_.share(values, team_.head_rank()));
  return values;
}

Result<LogProbs> Views::log_probs(Of net, View view, const StepBatch& batch, int64_t step) {
  const StepPath path = view == View::kDense ? StepPath::kProbe
                        : net == Of::kPolicy ? StepPath::kOldLogProbs
                                             : StepPath::kReference;
  const Confinement::Tag tag(confinement_, path);
  const ViewEpoch epoch = this->epoch(view, step);
  if (view == View::kCodec) expect_rows(Leg::kForward, batch);
  torch::Tensor values = TRY(forward(net == Of::kPolicy ? *policy_ : *reference_, view, batch, step));
  return LogProbs{std::move(values), epoch};
}

bool Views::refresh_is_due(int64_t step) const {
  return codec_ != nullptr && codec_->basis() != nullptr && step % settings_.wire.refresh_every == 0;
}

Result<void> Views::train(const StepBatch& batch, int64_t step, const LogProbs& old, const MicroLoss& loss,
                          View view) {
  const Confinement::Tag tag(confinement_, view == View::kDense ? StepPath::kAnchorReplay : StepPath::kTrain);
  const bool at_once = view == View::kCodec && settings_.wire.publish == Publish::kAtOnce;
  if (!at_once) TRY(check_view(old.epoch, epoch(view, step)));
  if (view == View::kCodec)
    for (const Leg leg : {Leg::kForward, Leg::kBackward}) expect_rows(leg, batch);
  TRY(policy_->train(
      batch.micro, step,
      [&](size_t i, const torch::Tensor& logits) { return loss(i, row_log_probs(logits, batch.rows[i])); },
      view));
  count_tied_gradients();
  if (at_once && refresh_is_due(step))
    refreshed_early_ += TRY(refresh_bases(*codec_->basis(), n_boundaries(), team_, &ledger_));
  return {};
}

/// The ends of a pipeline tell each other theirs, in f32; stages of one process would.
void Views::count_tied_gradients() {
  const std::string tied = policy_net_.tied_parameter();
  const StageSpan& span = policy_net_.span();
  if (tied.empty() || n_boundaries() == 0) return;
  for (const bool is_here : {span.has_embedding, span.has_head}) {
    if (!is_here) continue;
    const int64_t bytes = policy_net_.named_parameters()[tied].numel() * static_cast<int64_t>(sizeof(float));
    ledger_.record(SideAccount::kTied, bytes, 8.0 * static_cast<double>(bytes));
  }
}

Result<int64_t> Views::end_step(int64_t step, bool committed) {
  const int64_t early = std::exchange(refreshed_early_, 0);
  // A step that was skipped may have trained on nothing, and then has no rows to make a basis from.
  if (settings_.wire.publish == Publish::kAtOnce || !refresh_is_due(step) || !committed) return early;
  return refresh_bases(*codec_->basis(), n_boundaries(), team_, &ledger_);
}

Result<bool> Views::prepare_fresh_bases() {
  if (fresh_ == nullptr) return false;
  TRY(fresh_->restore(codec_->state()));
  const int64_t n = TRY(refresh_bases(*fresh_->basis(), n_boundaries(), team_, nullptr));
  return n > 0;
}

Result<torch::Tensor> Views::partial_log_probs(const StepBatch& batch, int64_t step, int64_t n_with_codec,
                                               Bases bases) {
  std::vector<Codec*> codecs(static_cast<size_t>(n_boundaries()), nullptr);
  Codec* const codec = bases == Bases::kFresh ? fresh_.get() : codec_.get();
  for (int64_t b = 0; b < n_with_codec; ++b) codecs[static_cast<size_t>(b)] = codec;
  const std::unique_ptr<Runner> runner = TRY(make_runner(policy_net_, std::move(codecs), {}, {}));
  if (codec == nullptr || shares_noise()) return forward(*runner, View::kCodec, batch, step);
  // Noise that is not shared comes from a count of passes, which this one is not to be part of.
  const std::map<std::string, torch::Tensor> before = codec->state();
  torch::Tensor values = TRY(forward(*runner, View::kCodec, batch, step));
  TRY(codec->restore(before));
  return values;
}

void Views::expect_rows(Leg leg, const StepBatch& batch) {
  if (codec_ == nullptr) return;
  for (const MicroBatch& micro : batch.micro)
    expected_rows_[static_cast<size_t>(leg)] += n_boundaries() * micro.ids_BT.numel();
}

Result<WireLedger> Views::take_ledger() {
  WireLedger sent = std::exchange(ledger_, WireLedger());
  WireLedger received = std::exchange(received_, WireLedger());
  const std::array<int64_t, 2> expected = std::exchange(expected_rows_, {});
  if (team_.size() > 1) {
    const std::string text = sent.to_json() + "\n" + received.to_json();
    const std::vector<Bytes> all = TRY(team_.bring(Bytes(text.begin(), text.end())));
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const std::string theirs(all[rank].begin(), all[rank].end());
      const size_t end = std::min(theirs.find('\n'), theirs.size());
      sent.add(TRY(WireLedger::from_json(theirs.substr(0, end))));
      received.add(TRY(WireLedger::from_json(theirs.substr(end))));
    }
    if (team_.leads()) TRY(sent.check_received(received));
  }
  if (!team_.leads()) return sent;
  for (const Leg leg : {Leg::kForward, Leg::kBackward})
    if (sent.total(leg).rows != expected[static_cast<size_t>(leg)])
      return Error{
          Code::kInternal,
          fmt::format("wire ledger: {} rows were sent {}, {} boundaries and the step's passes make {}",
                      sent.total(leg).rows, leg == Leg::kForward ? "forward" : "backward", n_boundaries(),
                      expected[static_cast<size_t>(leg)])};
  return sent;
}

Result<std::map<std::string, double>> Views::take_times() {
  std::map<std::string, double> means;
  if (stages_.empty()) return means;
  std::vector<double> mine(3, 0.0);
  for (StageRunner* stage : stages_) {
    const PipelineTimes& times = stage->times();
    mine[0] += times.compute;
    mine[1] += times.codec;
    mine[2] += times.wait;
    stage->reset_times();
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(mine.data());
  const std::vector<Bytes> all = TRY(team_.bring(Bytes(bytes, bytes + mine.size() * sizeof(double))));
  const char* const names[] = {"stage_compute_s", "stage_codec_s", "stage_wait_s"};
  for (const Bytes& one : all)
    for (size_t i = 0; i < mine.size() && (i + 1) * sizeof(double) <= one.size(); ++i) {
      double seconds = 0;
      std::memcpy(&seconds, one.data() + i * sizeof(double), sizeof(double));
      means[names[i]] += seconds / static_cast<double>(team_.size());
    }
  return means;
}

Result<std::map<std::string, torch::Tensor>> Views::state() {
  if (codec_ == nullptr) return std::map<std::string, torch::Tensor>();
  if (codec_->basis() == nullptr) return codec_->state();
  return joined_states(TRY(team_.collect(state_of_sender(codec_->state(), team_))));
}

Result<void> Views::restore(const std::map<std::string, torch::Tensor>& state) {
  if (codec_ == nullptr) return {};
  if (team_.size() == 1) return codec_->restore(state);
  Bytes mine;
  if (team_.leads()) mine = TRY(pack_tensors(state));
  const Bytes shared = TRY(team_.share(std::move(mine), 0));
  Result<TensorMap> theirs = unpack_tensors(shared);
  if (!theirs) return std::move(theirs).error().in("rank 0's codec state");
  return codec_->restore(*theirs);
}

}  // namespace forebay::train
