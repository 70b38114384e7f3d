#include "train/wire/basis.h"

#include <cstring>

#include <fmt/format.h>

#include "core/hash.h"
#include "train/wire/orthonormal.h"
#include "train/wire/prf.h"

namespace forebay::train {
namespace {

Error basis_error(Code code, int64_t boundary, std::string_view what) {
  return Error{code, fmt::format("basis of boundary {}: {}", boundary, what)};
}

}  // namespace

uint64_t content_checksum(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.detach().cpu().contiguous();
  return fast_checksum({static_cast<const std::byte*>(plain.data_ptr()), plain.nbytes()});
}

BasisBank::BasisBank(int64_t width, int64_t rank, uint64_t seed, bool accumulate)
    : width_(width), rank_(rank), seed_(seed), accumulate_(accumulate) {}

const torch::Tensor& BasisBank::active(int64_t boundary, torch::Device device) {
  Basis& basis = bases_[boundary];
  if (!basis.active_WR.defined())
    basis.active_WR =
        random_frame(prf_stream(PrfUse::kFrame, {seed_, static_cast<uint64_t>(boundary)}), width_, rank_);
  if (basis.active_WR.device() != device) basis.active_WR = basis.active_WR.to(device);
  return basis.active_WR;
}

void BasisBank::harvest(const torch::Tensor& x_NW, const WireKey& key) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = x_NW.detach().to(torch::kFloat);
  const torch::Tensor& q_WR = active(key.boundary, x.device());
  Basis& basis = bases_[key.boundary];
  const bool begins = !basis.sketch_WR.defined() || (!accumulate_ && basis.sketch_step != key.step);
  const torch::Tensor part_WR = x.t().matmul(x.matmul(q_WR));
  basis.sketch_WR = begins ? part_WR : basis.sketch_WR.to(x.device()).add(part_WR);
  basis.sketch_rows = (begins ? 0 : basis.sketch_rows) + x.size(0);
  basis.sketch_step = key.step;
}

Result<void> BasisBank::update(int64_t boundary, Publish publish_when) {
  const torch::NoGradGuard no_grad;
  Basis& basis = bases_[boundary];
  if (basis.pending_WR)
    return basis_error(Code::kInvalidArgument, boundary,
                       "an update while one is pending: activate or discard it");
  if (basis.sketch_rows == 0)
    return basis_error(Code::kInvalidArgument, boundary, "an update without a row harvested since the last");
  if (!basis.sketch_WR.isfinite().all().item<bool>())
    return basis_error(Code::kCorrupt, boundary, "the sketch is not finite");
  const uint64_t spare = prf_stream(
      PrfUse::kFrame, {seed_, static_cast<uint64_t>(boundary), static_cast<uint64_t>(basis.generation + 1)});
  basis.pending_WR = orthonormal(basis.sketch_WR, spare);
  if (publish_when == Publish::kAtOnce) publish(basis, *basis.pending_WR);
  return {};
}

void BasisBank::publish(Basis& basis, const torch::Tensor& q_WR) {
  const torch::Device device = basis.active_WR.defined() ? basis.active_WR.device() : torch::kCPU;
  basis.active_WR = q_WR.to(device);
  basis.content = content_checksum(q_WR);
  basis.pending_WR.reset();
  basis.sketch_WR.reset();
  basis.sketch_rows = 0;
  ++basis.generation;
  ++n_refreshes_;
}

bool BasisBank::has_pending() const {
  for (const auto& [boundary, basis] : bases_)
    if (basis.pending_WR) return true;
  return false;
}

int64_t BasisBank::activate() {
  int64_t n = 0;
  for (auto& [boundary, basis] : bases_) {
    if (!basis.pending_WR) continue;
    const torch::Tensor q_WR = *basis.pending_WR;
    publish(basis, q_WR);
    ++n;
  }
  return n;
}

void BasisBank::discard() {
  for (auto& [boundary, basis] : bases_) basis.pending_WR.reset();
}

Result<std::vector<uint8_t>> BasisBank::pending_bytes(int64_t boundary) const {
  const auto found = bases_.find(boundary);
  if (found == bases_.end() || !found->second.pending_WR)
    return basis_error(Code::kNotFound, boundary, "nothing is pending");
  const torch::Tensor q_WR = found->second.pending_WR->contiguous();
  std::vector<uint8_t> bytes(refresh_bytes());
  std::memcpy(bytes.data(), q_WR.data_ptr(), bytes.size());
  return bytes;
}

Result<void> BasisBank::set_pending(int64_t boundary, const std::vector<uint8_t>& bytes) {
  const torch::NoGradGuard no_grad;
  if (static_cast<int64_t>(bytes.size()) != refresh_bytes())
    return basis_error(Code::kCorrupt, boundary,
                       fmt::format("{} bytes arrived, wanted {}", bytes.size(), refresh_bytes()));
  const torch::Tensor q_WR = torch::empty({width_, rank_}, torch::kFloat);
  std::memcpy(q_WR.data_ptr(), bytes.data(), bytes.size());
  const torch::Tensor gram = q_WR.t().matmul(q_WR) - torch::eye(rank_);
  if (!(gram.abs().max().item<float>() < 1e-3f))
    return basis_error(Code::kCorrupt, boundary, "what arrived are no orthonormal columns");
  bases_[boundary].pending_WR = q_WR;
  return {};
}

int64_t BasisBank::harvested_rows(int64_t boundary) const {
  const auto found = bases_.find(boundary);
  return found == bases_.end() ? 0 : found->second.sketch_rows;
}

uint64_t BasisBank::id() const {
  uint64_t id = prf_stream(PrfUse::kEpoch, {seed_});
  // First frames follow from the seed: whether one was made yet says nothing.
  for (const auto& [boundary, basis] : bases_)
    if (basis.generation > 0)
      id = prf_absorb(prf_absorb(prf_absorb(id, boundary), basis.generation), basis.content);
  return id;
}

double captured_energy(const torch::Tensor& x_NW, const torch::Tensor& q_WR) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor x = x_NW.to(torch::kDouble);
  return (x.matmul(q_WR.to(torch::kDouble)).square().sum() / x.square().sum()).item<double>();
}

}  // namespace forebay::train
