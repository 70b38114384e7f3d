/// New bases for all boundaries, wherever their two ends are.
#pragma once

#include <cstdint>

#include "forebay/result.h"

#include "train/grpo/team.h"
#include "train/wire/basis.h"
#include "train/wire/ledger.h"

namespace forebay::train {

/// Each boundary's sender makes the next basis from its sketch, the receiver gets it over the anchor's
/// circuit, and all go into use. A boundary without a harvested row keeps its own. Returns how many changed,
/// in all processes. Collective. Errors, with the old ones in use: those of BasisBank and of the circuits.
Result<int64_t> refresh_bases(BasisBank& bank, int64_t n_boundaries, Team& team, WireLedger* ledger);

/// A bank's state without the boundaries that this process does not send over.
std::map<std::string, torch::Tensor> state_of_sender(std::map<std::string, torch::Tensor> state,
                                                     const Team& team);
/// The states of all senders as one bank would have them.
std::map<std::string, torch::Tensor> joined_states(std::map<std::string, torch::Tensor> states);

}  // namespace forebay::train
