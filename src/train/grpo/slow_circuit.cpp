#include "train/grpo/slow_circuit.h"

#include <map>
#include <sstream>

#include <fmt/format.h>

#include "core/sha256.h"

namespace forebay::train {
namespace {

std::string hash_of(const torch::Tensor& base, const SafeMaskOptions& options) {
  const torch::Tensor one[] = {base};
  return to_hex(safe_masks(one, options).hash);
}

}  // namespace

Result<std::vector<torch::Tensor>> SlowCircuit::make_masks(const Net& base, const NamedTensors& whole_base,
                                                           const SafeMaskOptions& options) {
  std::vector<torch::Tensor> masks;
  std::string text;
  for (const auto& item : base.named_parameters()) {
    const torch::Tensor one[] = {item.value().detach().cpu()};
    SafeMasks made = safe_masks(one, options);
    masks.push_back(made.masks[0]);
    text += fmt::format("{} {}\n", item.key(), to_hex(made.hash));
  }
  const std::vector<Bytes> all = TRY(team_.bring(Bytes(text.begin(), text.end())));
  std::map<std::string, std::string> by_name;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream lines(std::string(all[rank].begin(), all[rank].end()));
    for (std::string name, hash; lines >> name >> hash;) {
      const auto tensor = whole_base.find(name);
      // The leader's own masks need no second look.
      if (rank > 0 && (tensor == whole_base.end() || hash_of(tensor->second, options) != hash))
        return Error{Code::kInternal,
                     fmt::format("the safe mask of {} at rank {} is another one than at rank 0: signs would "
                                 "go to the wrong weights; use one build of libtorch everywhere",
                                 name, rank)};
      by_name[name] = hash;
    }
  }
  std::string sorted;
  for (const auto& [name, hash] : by_name) sorted += fmt::format("{} {}\n", name, hash);
  if (team_.leads()) mask_hash_ = to_hex(sha256(std::as_bytes(std::span(sorted))));
  return masks;
}

Result<std::unique_ptr<SlowCircuit>> SlowCircuit::create(Net& policy, const Net& base,
                                                         const NamedTensors& whole_base,
                                                         const GrpoSettings& settings, Team& team) {
  std::unique_ptr<SlowCircuit> circuit(new SlowCircuit(team));
  std::vector<torch::Tensor> parameters, masks;
  for (const auto& item : policy.named_parameters()) {
    circuit->names_.push_back(item.key());
    parameters.push_back(item.value());
  }
  if (settings.anchor.masked) masks = TRY(circuit->make_masks(base, whole_base, settings.anchor.mask));
  masks.resize(parameters.size());
  const AnchorOptions options{
      .mu = settings.anchor.mu,
      .every = settings.anchor.every,
      .step = settings.anchor.step > 0 ? settings.anchor.step : 0.1 * settings.grpo.lr};
  for (size_t i = 0; i < parameters.size(); ++i)
    (policy.is_copy(circuit->names_[i]) ? circuit->copy_ : circuit->own_).indices.push_back(i);
  for (Part* part : {&circuit->own_, &circuit->copy_}) {
    std::vector<torch::Tensor> some, some_masks;
    for (const size_t i : part->indices) {
      some.push_back(parameters[i]);
      some_masks.push_back(masks[i]);
    }
    part->anchor = TRY(SignAnchor::make(std::move(some), std::move(some_masks), options));
  }
  return circuit;
}

Result<void> SlowCircuit::tick(Part& part, const std::vector<torch::Tensor>& gradients) {
  std::vector<torch::Tensor> some;
  for (size_t i = 0; i < part.indices.size(); ++i) {
    const torch::Tensor& gradient = gradients[part.indices[i]];
    some.push_back(gradient.defined() ? gradient : torch::zeros_like(part.anchor->averages()[i]));
  }
  return part.anchor->tick(some);
}

Result<bool> SlowCircuit::tick(const std::vector<torch::Tensor>& gradients, WireLedger& wire) {
  TRY(tick(own_, gradients));
  TRY(tick(copy_, gradients));
  if (!own_.anchor->due()) return false;
  std::vector<uint8_t> mine = own_.anchor->signs();
  wire.record(SideAccount::kSlow, static_cast<int64_t>(mine.size()),
              static_cast<double>(own_.anchor->n_signs()));
  if (team_.anchor() != nullptr) {
    std::vector<Bytes> signs = TRY(team_.anchor()->allgather(mine));
    mine = std::move(signs[static_cast<size_t>(team_.rank())]);
  }
  TRY(own_.anchor->fire(mine));
  TRY(copy_.anchor->fire(copy_.anchor->signs()));
  return true;
}

NamedTensors SlowCircuit::state() const {
  NamedTensors state;
  for (const Part* part : {&own_, &copy_})
    for (size_t i = 0; i < part->indices.size(); ++i)
      state[names_[part->indices[i]]] = part->anchor->averages()[i];
  return state;
}

Result<void> SlowCircuit::restore(const NamedTensors& state, const AnchorCounts& counts) {
  for (Part* part : {&own_, &copy_}) {
    std::vector<torch::Tensor> averages;
    for (const size_t i : part->indices) {
      const auto at = state.find(names_[i]);
      if (at == state.end()) return Error{Code::kCorrupt, "anchor: no average of " + names_[i]};
      averages.push_back(at->second);
    }
    TRY(part->anchor->restore(averages, counts));
  }
  return {};
}

}  // namespace forebay::train
