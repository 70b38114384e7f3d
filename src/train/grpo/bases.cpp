#include "train/grpo/bases.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace forebay::train {
namespace {

constexpr uint64_t kBasisTag = uint64_t{6} << 61;

}  // namespace

Result<int64_t> refresh_bases(BasisBank& bank, int64_t n_boundaries, Team& team, WireLedger* ledger) {
  const auto update = [&](int64_t boundary) -> Result<bool> {
    if (bank.harvested_rows(boundary) == 0) return false;
    TRY(bank.update(boundary));
    if (ledger != nullptr)
      ledger->record(SideAccount::kRefresh, bank.refresh_bytes(),
                     8.0 * static_cast<double>(bank.refresh_bytes()));
    return true;
  };
  const auto failed = [&](Error error) {
    bank.discard();
    return error;
  };
  int64_t n = 0;
  if (team.size() == 1) {
    for (int64_t b = 0; b < n_boundaries; ++b) {
      const Result<bool> done = update(b);
      if (!done) return failed(done.error());
      n += *done ? 1 : 0;
    }
    bank.activate();
    return n;
  }
  const int64_t sends = team.rank(), receives = team.rank() - 1;
  Bytes mine;
  if (sends < n_boundaries) {
    const Result<bool> done = update(sends);
    if (!done) return failed(done.error());
    if (*done) mine = TRY(bank.pending_bytes(sends));
    n = *done ? 1 : 0;
    TRY(team.anchor()->send(team.rank() + 1, kBasisTag, std::move(mine)));
  }
  if (receives >= 0) {
    const Bytes bytes =
        TRY(team.anchor()->recv(team.rank() - 1, kBasisTag, std::numeric_limits<size_t>::max()));
    if (!bytes.empty())
      if (Result<void> taken = bank.set_pending(receives, bytes); !taken) return failed(taken.error());
  }
  // All have what they need before any of it is used.
  torch::Tensor total = torch::tensor(n, torch::kInt64).reshape({1});
  const std::vector<Bytes> all = TRY(team.anchor()->allgather(
      {static_cast<const uint8_t*>(total.data_ptr()), static_cast<size_t>(total.nbytes())}));
  n = 0;
  for (const Bytes& bytes : all) {
    int64_t one = 0;
    std::memcpy(&one, bytes.data(), std::min(sizeof(one), bytes.size()));
    n += one;
  }
  bank.activate();
  return n;
}

std::map<std::string, torch::Tensor> state_of_sender(std::map<std::string, torch::Tensor> state,
                                                     const Team& team) {
  if (team.size() == 1) return state;
  const std::string own = fmt::format("boundary.{}.", team.rank());
  std::erase_if(state, [&](const auto& entry) { return !entry.first.starts_with(own) || team.has_head(); });
  return state;
}

std::map<std::string, torch::Tensor> joined_states(std::map<std::string, torch::Tensor> states) {
  if (states.contains("refreshes") || states.empty()) return states;
  int64_t refreshes = 0;
  for (const auto& [key, tensor] : states)
    if (key.ends_with(".numbers")) refreshes += tensor[2].item<int64_t>();
  states["refreshes"] = torch::tensor(refreshes, torch::kInt64);
  return states;
}

}  // namespace forebay::train
