#include "train/grpo/weight_feed.h"

#include <fmt/format.h>

#include "train/anchor/delta_tensors.h"
#include "train/grpo/tied_copies.h"

namespace forebay::train {
namespace {

NamedTensors copy_of(const Net& net) {
  NamedTensors copy;
  for (const auto& [name, tensor] : named_tensors(net)) copy[name] = tensor.detach().cpu().clone();
  return copy;
}

int64_t n_bytes(const NamedTensors& tensors) {
  int64_t n = 0;
  for (const auto& [name, tensor] : tensors) n += static_cast<int64_t>(tensor.nbytes());
  return n;
}

}  // namespace

Result<void> WeightFeed::for_drawing(int64_t n_done, Sampler* sampler) {
  if (held_step_ < 0 || (n_done != held_step_ && n_done % settings_.sampler.refresh_every == 0)) {
    held_ = copy_of(policy_);
    held_step_ = n_done;
  }
  return send(held_, held_step_, settings_.sampler.weights == SamplerWeights::kBf16Delta, sampler);
}

Result<void> WeightFeed::for_validation(int64_t n_done, Sampler* sampler) {
  return send(named_tensors(policy_), n_done, settings_.sampler.weights == SamplerWeights::kBf16Delta,
              sampler);
}

Result<void> WeightFeed::exact(Exactly which, int64_t n_done, Sampler* sampler) {
  if (which == Exactly::kHeld) return send(held_, held_step_, /*rounded=*/false, sampler);
  return send(named_tensors(policy_), n_done, /*rounded=*/false, sampler);
}

void WeightFeed::restore(NamedTensors held, int64_t held_step) {
  held_ = std::move(held);
  held_step_ = held_step;
}

Result<void> WeightFeed::send(const NamedTensors& held, int64_t step, bool rounded, Sampler* sampler) {
  if (loaded_step_ == step && loaded_rounded_ == rounded) return {};
  const NamedTensors mine = without_copies(held, policy_);
  NamedTensors whole;
  if (rounded) {
    whole = TRY(collect_deltas(mine));
  } else {
    whole = TRY(team_.collect(mine));
    sent_.bytes += n_bytes(whole);
  }
  loaded_step_ = step;
  loaded_rounded_ = rounded;
  if (sampler == nullptr) return {};
  return sampler->refresh(policy_.config(), whole);
}

Result<NamedTensors> WeightFeed::collect_deltas(const NamedTensors& mine) {
  Bf16Tensors now = TRY(bf16_of(mine));
  if (n_deltas_ == 0)
    for (const auto& [name, tensor] : now)
      base_[name] = {tensor.shape, std::vector<uint16_t>(tensor.bits.size())};
  const std::vector<std::byte> file = TRY(make_delta(base_, now, n_deltas_, n_deltas_ + 1));
  base_ = std::move(now);
  const auto* const first = reinterpret_cast<const uint8_t*>(file.data());
  const std::vector<Bytes> files = TRY(team_.bring(Bytes(first, first + file.size())));
  const uint64_t at_step = n_deltas_++;
  NamedTensors whole;
  copies_.resize(files.size());
  for (size_t rank = 0; rank < files.size(); ++rank) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(files[rank].data());
    const Delta delta = TRY(
        parse_delta({bytes, bytes + files[rank].size()}, fmt::format("delta {} of rank {}", at_step, rank)));
    NamedTensors& copy = copies_[rank];
    if (at_step == 0)
      for (const DeltaTensor& tensor : delta.tensors)
        copy[tensor.name] = torch::zeros(std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()));
    TRY(apply_delta(delta, at_step, copy));
    for (const auto& [name, tensor] : copy) whole.emplace(name, tensor);
    sent_.bytes += static_cast<int64_t>(files[rank].size());
    sent_.n_changed += static_cast<int64_t>(delta.n_changed());
    sent_.n_elements += static_cast<int64_t>(delta.n_elements());
  }
  return whole;
}

}  // namespace forebay::train
