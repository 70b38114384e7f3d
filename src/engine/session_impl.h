/// What a session keeps. Its calls are in session.cpp; batch.cpp appends to several at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "engine/engine_impl.h"
#include "model/state.h"
#include "session/snapshot_pool.h"

namespace forebay {

struct Session::Impl {
  Impl(Engine::Impl& engine, SequenceState state, uint64_t snapshot_bytes)
      : engine(engine), state(std::move(state)), places(snapshot_bytes, engine.budget) {}

  Engine::Impl& engine;
  SequenceState state;
  std::vector<int32_t> tokens;
  SnapshotPool places;         // each of a prefix of `tokens`
  std::vector<int64_t> stops;  // where the prompt that is being read becomes a place, ascending
  std::vector<float> logits;   // of the last token, while logits_valid
  bool logits_valid = false;

  /// Brings the state to a prefix of the prompt that shares its first n_common tokens, and says how.
  std::string rewind_to(int64_t n_common, int64_t n_prompt);
  /// How many of a prompt's next tokens to feed: as prompt_part, and no further than the next stop.
  int64_t next_part(int64_t done, int64_t total, int64_t most) const;
  /// After part of a prompt was fed: at its end and at stops the state becomes a place to return to.
  void after_part(int64_t n_left);
  /// After a pass that failed: the model reset the state if it broke it.
  void forget_lost_state();
};

}  // namespace forebay
