/// The door to a model: open a file, start a session, generate. Everything outside this library comes in
/// here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/experts.h"
#include "forebay/kv.h"
#include "forebay/result.h"
#include "forebay/sampling.h"

namespace forebay {

class Tokenizer;
class Model;
class GgufFile;
class MemoryBudget;
class Session;
class Storage;
class TokenConstraint;

struct EngineOptions {
  std::string model;      // path of a GGUF file (any shard of a split one)
  std::string mtp_model;  // a separate draft-head file; empty: the head inside
                          // the model file, if any

  // Changes speed or memory, no result.
  int threads = 0;                  // 0: the usable cores
  bool pin_threads = false;         // every thread but the caller's on a core of its own
  uint64_t memory_limit_bytes = 0;  // refuse to reserve more; 0: no limit
  int64_t context = 0;              // tokens a session can hold; 0: the model's, at most 8192
  int n_sessions = 1;               // how many the memory plan leaves room for
  int64_t chunk = 0;                // most prompt tokens per forward pass; scratch memory grows with it; 0:
                                    // what the plan allows, 256 without one
  bool load_mtp = false;            // keep the draft head in memory
  std::optional<ExpertPlacement> experts;  // absent: streamed with a budget or where the file does not fit
                                           // what is free, else mapped
  uint64_t budget_bytes = 0;  // with streamed experts, for everything: trunk, state, buffers, experts; 0:
                              // what is free, less a margin
  EvictionPolicy expert_policy = EvictionPolicy::kDecay;
  ReadEngine read_engine = ReadEngine::kAuto;
  std::optional<bool>
      copy_trunk;               // what every token reads is copied into memory of huge pages, not read in the
                                // mapped file, which other processes share; absent: copied where the system
                                // has such pages, experts are not mapped and no memory_limit_bytes is set
  std::string expert_pack;      // read experts from this pack of the file (forebay pack)
  bool prefetch = true;         // with kStreamed: read the next block's likely experts ahead
  uint64_t snapshot_bytes = 0;  // of a session, for places to go back to when a prompt parts from the one
                                // before; 0: four copies of its recurrent state, and 64 MiB where these are
                                // small and no budget is set

  std::string cache_dir;  // keep what sessions read in files here and find it again, in later runs too
  uint64_t cache_bytes =
      uint64_t{8} << 30;  // at most, of all its files; the ones used longest ago leave; 0: no limit

  std::string trace;  // record every row's routing in this file (docs/formats/trace.md)

  // Changes results: what block-quantised weights are multiplied with is rounded to 8 bits, several times
  // faster; forebay kld prints the price.
  bool int8_activations = false;

  // Changes results but for kF32: how keys and values are kept, which memory and speed at long context hang
  // on. Absent: kInt8 where attention is block-sparse, else kF32.
  std::optional<KvType> kv = KvType::kF32;

  // Changes results, off by default: after an edit in the middle of a prompt, what follows it is moved
  // instead of read again (docs/reuse.md), unless a larger share of the recurrent state than max_staleness
  // may be stale (0 to 1). Transport corrects the long memories, for 2 bytes per key value and token.
  bool reuse_edits = false;
  bool transport_edits = false;  // with reuse_edits
  double max_staleness = 0.15;

  // Changes results in the last bits.
  bool reference_kernels = false;  // the plain, slow definitions instead of the fast kernels

  // Changes results, off at 0: experts in memory are preferred, their probability counted (1 + bias)-fold.
  float route_bias = 0;         // when decoding; the three likeliest are chosen as ever
  float route_bias_prompt = 0;  // in a prompt but for its last 32 tokens; the four likeliest are
};

struct ModelInfo {
  std::string path;
  std::string name;
  std::string architecture;
  uint64_t file_bytes = 0;
  int64_t context_length = 0;  // trained
  int64_t context = 0;         // of a session
  int64_t chunk = 0;           // prompt tokens per forward pass
  int n_vocab = 0;
  int threads = 0;
  std::optional<ExpertPlacement> experts;  // absent: a dense model
  uint64_t trunk_copy_bytes = 0;           // 0: the trunk is read in the mapped file
  double trunk_copy_seconds = 0;           // of opening, that the copy took
  KvType kv = KvType::kF32;
  bool has_tokenizer = false;
  bool has_chat_template = false;
  bool has_mtp = false;
  SamplingOptions sampling;  // the file's own defaults (general.sampling.*),
                             // else temperature 0.7, top_p 0.95, top_k 20
};

/// A directory of states (EngineOptions::cache_dir).
struct CacheDirStats {
  uint64_t n_files = 0;
  uint64_t bytes = 0;
  uint64_t n_saved = 0;      // by this engine, as all below
  uint64_t n_pruned = 0;     // to make room
  uint64_t n_discarded = 0;  // corrupt, unfinished or without what they go on from
  uint64_t n_not_saved = 0;  // the disk or the budget said no
};

/// What was planned before anything was allocated.
struct PlanSummary {
  std::string text;              // at most 8 lines
  double tokens_per_second = 0;  // expected when decoding
  double hit_rate = 0;           // expected
};

/// Where a prompt's tokens came from.
struct SyncReport {
  int64_t n_prompt = 0;
  int64_t n_reused = 0;     // already in the session's state
  int64_t n_prefilled = 0;  // computed now
  int64_t n_loaded = 0;     // of the reused ones, how many came from a file
  int64_t n_moved = 0;      // of the reused ones, moved to another place after an edit (reuse_edits)
  double seconds = 0;
  std::string why;  // "extends the live state", "restored the snapshot at 812",
                    // ... in words
};

enum class FinishReason { kStopToken, kStopString, kLength, kContextFull, kRepetition, kCancelled };
std::string_view name_of(FinishReason reason);  // "stop", "length", ...

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = -1;             // -1: until a stop token or the end of the context
  std::vector<std::string> stop = {};  // text that ends the answer, not included in it
  int max_repeats = 0;                 // end when one token came so many times in a row; 0: never
  bool ignore_stop_tokens = false;
  bool specials = false;                             // print control tokens
  int top_log_probs = 0;                             // report this many alternatives per token
  std::shared_ptr<TokenConstraint> constraint = {};  // changes results: what the answer must look like;
                                                     // follows one answer, so each has its own
};

struct GeneratedToken {
  int32_t id = -1;
  std::string_view text;  // what became complete with this token: valid UTF-8, possibly empty
  double log_prob = 0;    // under the model's unmodified distribution
  std::span<const std::pair<int32_t, float>> top;  // (id, log-prob), with top_log_probs
};

struct GenerateReport {
  SyncReport prompt;
  int64_t n_generated = 0;
  double decode_seconds = 0;
  FinishReason reason = FinishReason::kLength;
};

/// Called per token, on the caller's thread. Return false to stop after this token.
using TokenCallback = std::function<bool(const GeneratedToken&)>;
/// Prompt tokens done, prompt tokens in all.
using PrefillCallback = std::function<void(int64_t done, int64_t total)>;

/// Confined to one thread, and so are its sessions: one forward pass at a time. Any thread may call info,
/// tokenize, detokenize, render_chat and tokenizer.
class Engine {
 public:
  static Result<Engine> open(const EngineOptions& options);
  /// The same through a storage and from a budget of the caller's: what tests make fail.
  static Result<Engine> open(const EngineOptions& options, std::unique_ptr<Storage> storage,
                             std::unique_ptr<MemoryBudget> budget);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  const ModelInfo& info() const;

  /// Errors: kUnsupported when the file has no vocabulary.
  Result<std::vector<int32_t>> tokenize(std::string_view text, bool parse_special = true) const;
  Result<std::string> detokenize(std::span<const int32_t> ids, bool specials = true) const;

  /// The file's chat template over a conversation: a JSON object with messages, and optionally tools,
  /// add_generation_prompt, enable_thinking and whatever else the template reads.
  /// Errors: kUnsupported when the file has no template; kInvalidArgument with the template's line and
  /// reason.
  Result<std::string> render_chat(std::string_view conversation_json) const;

  /// Errors: kOutOfMemory when the state does not fit the memory limit. Must not outlive the engine.
  Result<Session> new_session();

  /// Bytes reserved now and at most: state, scratch and copies; mapped weights are not counted.
  uint64_t reserved_bytes() const;
  uint64_t peak_reserved_bytes() const;

  /// Empty when experts are mapped or the model has none.
  std::optional<ExpertCacheStats> expert_stats();
  /// In forward passes so far, waiting for experts included.
  double forward_seconds() const;
  /// Of an n-gram table's rows that are held in memory, in the system's page cache: apart from what is
  /// reserved, and capped for large tables.
  uint64_t ngram_bytes() const;
  /// With a cache_dir. Any thread may ask; `wait` for what is being written.
  std::optional<CacheDirStats> cache_dir_stats(bool wait = true);
  /// With streamed experts.
  const std::optional<PlanSummary>& plan() const;
  /// Completes the trace, if there is one; nothing is recorded afterwards. Errors: kIo, of any write so far.
  Result<void> finish_trace();

  // For the rest of this library.
  Model& model();
  const GgufFile& file() const;
  const Tokenizer* tokenizer() const;  // null without a vocabulary
  MemoryBudget& budget();

  struct Impl;

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One timeline of tokens. Callers pass the whole prompt every time; what is already in the state is kept.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Makes the state that of the longest prefix of `prompt` that can be reused; computes nothing. The report
  /// says how much is left (n_prefilled, seconds 0), which engine/batch.h feeds.
  Result<SyncReport> prepare(std::span<const int32_t> prompt);
  /// prepare(), and the rest is computed. Afterwards logits() are those of the prompt's last token.
  /// Cancelled: the state keeps the part that was done.
  Result<SyncReport> sync(std::span<const int32_t> prompt, const PrefillCallback& progress = {},
                          std::stop_token stop = {});
  /// Appends one token.
  Result<void> append(int32_t token);
  /// Drops the tokens from `to` on. What cannot be dropped is gone back before and run again: the state, and
  /// logits(), are those of having been given the first `to` tokens. Errors: kInvalidArgument, and as sync.
  Result<SyncReport> rewind(int64_t to);
  /// Logits after the last token, n_vocab values; borrowed until the next call on this session.
  std::span<const float> logits() const;
  /// The tokens whose state this is.
  std::span<const int32_t> tokens() const;

  /// The turn is over: with a cache_dir, what later prompts are likely to begin with is written while the
  /// session goes on. generate() does it by itself.
  void end_turn();
  /// Writes the state to a file (docs/formats/session.md) from which load() goes on bit for bit, in another
  /// process too. Errors: kIo; kUnsupported when rows were moved after an edit (reuse_edits): files are
  /// exact.
  Result<void> save(const std::string& path) const;
  /// Makes the state that of a file, of the same model and the same options that change results; returns its
  /// tokens. What is wrong with a file is found before the state changes, but for bytes that cannot be read
  /// or are damaged: then the session is empty.
  Result<int64_t> load(const std::string& path);

  /// sync(prompt), then tokens until something ends the answer.
  Result<GenerateReport> generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                  const TokenCallback& on_token, const PrefillCallback& progress = {},
                                  std::stop_token stop = {});

  /// Empties the session.
  void reset();

  // For the rest of this library.
  struct Impl;
  Impl& impl();

 private:
  friend class Engine;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
