/// What a session keeps. Its calls are in session.cpp; batch.cpp appends to several at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "engine/engine_impl.h"
#include "model/state.h"

namespace forebay {

struct Session::Impl {
  Impl(Engine::Impl& engine, SequenceState state) : engine(engine), state(std::move(state)) {}

  Engine::Impl& engine;
  SequenceState state;
  std::vector<int32_t> tokens;
  std::vector<Snapshot> snapshots;  // ascending, each of a prefix of `tokens`
  std::vector<float> logits;        // of the last token, while logits_valid
  bool logits_valid = false;

  /// Brings the state to a prefix of the prompt that shares its first n_common tokens, and says how.
  std::string rewind_to(int64_t n_common, int64_t n_prompt);
  /// The state is that of a whole prompt: a place to return to.
  void take_snapshot();
  /// After a pass that failed: the model reset the state if it broke it.
  void forget_lost_state();
};

}  // namespace forebay
