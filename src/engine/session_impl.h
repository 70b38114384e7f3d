/// What a session keeps. Its calls are in session.cpp; batch.cpp appends to several at once.
#pragma once

#include <cstdint>
#include <future>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "forebay/engine.h"

#include "engine/edit_reuse.h"
#include "engine/engine_impl.h"
#include "model/state.h"
#include "session/session_file.h"
#include "session/snapshot_pool.h"

namespace forebay {

struct Session::Impl {
  Impl(Engine::Impl& engine, SequenceState state, uint64_t snapshot_bytes)
      : engine(engine), state(std::move(state)), places(snapshot_bytes, engine.budget) {
    tokens.reserve(static_cast<size_t>(this->state.context()));
  }

  Engine::Impl& engine;
  SequenceState state;
  std::vector<int32_t> tokens;
  SnapshotPool places;  // each of a prefix of `tokens`
  // What is being written for the prefix store, from the first cells of this state.
  std::shared_future<void> saving;
  int64_t n_saving = 0;
  std::set<std::string> own_files;  // of this conversation
  int64_t learn_at = 0;             // a stop whose state other conversations will want
  bool exact = true;           // else the state is not what reading its tokens gives: it is kept in no cache
  int64_t n_last_prompt = 0;   // tokens after it are the answer
  std::vector<int64_t> stops;  // where the prompt that is being read becomes a place, ascending
  std::vector<float> logits;   // of the last token, while logits_valid
  bool logits_valid = false;
  std::optional<EditReuse> edits;  // with EngineOptions::reuse_edits

  ~Impl() { before_overwriting(0); }

  /// Waits for whoever reads cells from n_cells on.
  void before_overwriting(int64_t n_cells);
  /// How many of the prompt's tokens rewind_to would keep.
  int64_t n_reusable(int64_t n_common, int64_t n_prompt) const;
  /// A longer prefix than that from a file: the state becomes it, and words say so; else why not, or nothing.
  std::string load_prefix(std::span<const int32_t> prompt, int64_t n_local, SyncReport& report);
  void save_prefix(std::shared_ptr<const Snapshot> at, std::vector<float> after, bool shared);
  /// `prompt` as it stands in the state: with the newlines that edits were padded with.
  std::vector<int32_t> as_cells(std::span<const int32_t> prompt) const {
    return edits ? edits->with_pads(tokens, prompt) : std::vector<int32_t>(prompt.begin(), prompt.end());
  }
  /// Brings the state to a prefix of the prompt that shares its first n_common tokens, and says how.
  std::string rewind_to(int64_t n_common, int64_t n_prompt);
  /// How many of a prompt's next tokens to feed: as prompt_part, and no further than the next stop.
  int64_t next_part(int64_t done, int64_t total, int64_t most) const;
  /// After part of a prompt was fed: at its end and at stops the state becomes a place to return to.
  void after_part(int64_t n_left);
  /// The last place before the answer to the last prompt began, or null.
  const Place* answer_start() const;
  /// The state becomes a file's. Errors: as SessionReader::load.
  Result<void> load(SessionReader& reader);
  /// After state, tokens and logits became those of another timeline, which has these places.
  void starts_anew(std::vector<Snapshot> places = {});
  /// After a pass that failed: the model reset the state if it broke it.
  void forget_lost_state();
};

}  // namespace forebay
