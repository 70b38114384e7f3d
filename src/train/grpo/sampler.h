/// Answers drawn by the engine: the same forward pass that serves, exact activations, many sequences in one
/// window, joining and leaving as they begin and end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"
#include "train/nets/files.h"
#include "train/nets/net.h"

namespace forebay {
class Tokenizer;
}

namespace forebay::train {

struct SamplerOptions {
  int threads = 0;            // 0: the usable cores
  int64_t n_sequences = 256;  // at once; memory grows with it
  int64_t context = 64;       // tokens that a prompt and its answer may have
  int64_t max_window = 1024;  // rows of one pass
};

struct Rollout {
  std::vector<int32_t> tokens;   // with the one that ended it, if one did
  std::vector<float> log_probs;  // of each, as the sampler saw it
  bool ended = false;            // false: cut off
};

/// How to draw. Every draw is a function of (seed, stream of the prompt, number of the answer, position).
struct DrawPlan {
  int64_t n_answers = 1;
  int64_t max_tokens = 16;
  bool greedy = false;
  uint64_t seed = 0;
  uint64_t first_stream = 0;  // answer j of prompt i draws from stream first_stream + i n_answers + j
  /// Tokens to take instead of drawing, [prompts * n_answers], each with one token at least: what comes back
  /// are their log-probs under the weights at hand, to the bit those that drawing them would have given.
  std::span<const Rollout> given = {};
};

/// Confined.
class Sampler {
 public:
  /// `vocabulary` is a GGUF file in `storage` whose tokenizer the model has. Errors: of the file.
  static Result<Sampler> create(Storage& storage, const Path& vocabulary, const SamplerOptions& options);
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// Takes the weights of a whole model, f32: what is drawn afterwards is the model's, to rounding. Errors:
  /// of the engine, for weights that it refuses.
  Result<void> refresh(const ModelConfig& config, const NamedTensors& tensors);
  Result<void> refresh(const Net& net) { return refresh(net.config(), named_tensors(net)); }
  /// The file that refresh() made, for whoever keeps it.
  std::span<const std::byte> model_file() const;

  const Tokenizer& tokenizer() const;
  /// Of the vocabulary: whether two samplers speak the same.
  uint64_t words_hash() const;
  /// The prompt's ids as the engine would make them.
  std::vector<int32_t> encode(std::string_view prompt) const;
  /// What the answer says; the token that ended it is not part of it, other control tokens are.
  std::string decode(const Rollout& rollout) const;

  /// n_answers for each prompt, in order: [prompts * n_answers]. The same whatever n_sequences and threads
  /// are. Errors: kInvalidArgument for a prompt that does not fit; kCorrupt naming a tensor that is not
  /// finite; kCancelled.
  Result<std::vector<Rollout>> draw(std::span<const std::vector<int32_t>> prompts, const DrawPlan& plan,
                                    std::stop_token stop = {});

 private:
  struct Impl;
  explicit Sampler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::train
