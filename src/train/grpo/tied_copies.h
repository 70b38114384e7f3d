/// A parameter that is embedding and output head in one, where those are two stages: each has one, with
/// states of its own. The first stage's is sent and saved; the last one's must stay equal.
#pragma once

#include "forebay/result.h"

#include "train/grpo/team.h"
#include "train/nets/files.h"

namespace forebay::train {

/// Without the second ones. Names may begin with anything: "optimizer.adam.m.model.embed_tokens.weight".
NamedTensors without_copies(NamedTensors tensors, const Net& net);

/// Collective. `mine` is what a checkpoint has of this stage, the second ones included. Errors, at the
/// leader: kInternal naming rank and tensor where a second one has other bits than the first.
Result<void> check_copies(const NamedTensors& mine, const Net& net, Team& team);

}  // namespace forebay::train
