/// The three circuits of a run: pipe for rows and gradients between stages, anchor for the slow exchange,
/// control for meeting and failing.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "forebay/result.h"

#include "core/world.h"
#include "train/comm/comm.h"

namespace forebay::train {

enum class Backend { kTcp, kGloo, kNccl };

/// "tcp", "gloo", "nccl".
std::string_view name_of(Backend backend);

/// All of it changes speed only.
struct CommOptions {
  Backend backend = Backend::kTcp;
  Timeouts timeouts = {};
  LinkOptions pipe_link = {};    // emulated, beneath the messages
  LinkOptions anchor_link = {};  // likewise; its collectives then go as messages
};

/// Confined. Destroyed without shutdown(), the others see this process as gone.
struct Circuits {
  std::unique_ptr<Control> control;
  std::unique_ptr<Comm> pipe;
  std::unique_ptr<Comm> anchor;

  Circuits() = default;
  Circuits(Circuits&&) = default;
  Circuits& operator=(Circuits&&) = default;
  ~Circuits();  // users before what they use

  /// The end, as agreed, in the same order everywhere: pipe, anchor, control.
  Result<void> shutdown();
};

/// Meets the other processes. Collective. Errors: options that contradict each other, a backend that this
/// build has not, a failed rendezvous with host, port and missing ranks.
Result<Circuits> connect_circuits(const World& world, const CommOptions& options);

}  // namespace forebay::train
