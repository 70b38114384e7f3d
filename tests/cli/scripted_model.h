/// A model whose answers are known: every byte is a token, and what follows a token depends on that token
/// alone (the embedding is the identity, the head a table of transitions, and the block between them
/// whispers).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/path.h"

namespace forebay::cli {

// Ids after those of the 256 bytes.
constexpr int kEndOfText = 256, kTurnStart = 257, kTurnEnd = 258, kThink = 259, kThinkEnd = 260;

/// What is wrong with it, if anything.
struct ScriptedModel {
  std::string architecture = "qwen3moe";
  bool vocabulary = true;
  std::optional<std::string> chat_template = kTemplate;  // none: the file has no template
  std::string missing = {};                              // a tensor left out
  bool draft_block = false;                              // a tensor of a second block, which is a draft head
  std::string misshapen = {};                            // a tensor with one row too few
  std::string poisoned = {};                             // a tensor whose last value is NaN
  bool add_bos = false;
  float sharpness = 1;  // of all transitions

  /// Reasoning "hm", then "42": <think> -> h -> m -> </think> -> 4 -> 2 -> <|im_end|>. Without <|im_end|>, 2
  /// is followed by 4. Capital letters follow capital letters with probabilities of all sizes.
  static const char* const kTemplate;
};

void write_scripted_model(const Path& path, const ScriptedModel& model = {});

/// A sound one, written once per process.
const std::string& scripted_model();

}  // namespace forebay::cli
