/// A sequence's state in a file, and back, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/storage.h"
#include "model/state.h"
#include "session/session_format.h"

namespace forebay {

/// Reads and writes under way at once.
inline constexpr int kSessionThreads = 4;

/// A state as it is now, or as it was at a snapshot: rows up to there are the same. While it is written, the
/// state may grow, but cells before tokens.size() must stay as they are.
struct SessionImage {
  const SequenceState* state = nullptr;
  std::shared_ptr<const Snapshot> snapshot;  // null: now, and then nothing of the state may change
  std::span<const int32_t> tokens;           // one per cell
  std::span<const float> logits;             // after the last token, or none
  // Of the same sequence, further back: where a later prompt may part from it.
  std::vector<std::shared_ptr<const Snapshot>> places = {};
};

/// A file beside the new one whose tokens are a prefix of its tokens.
struct SessionParent {
  std::string name;
  SessionHeader header;
};

struct SessionWriteOptions {
  std::vector<std::string> facts = {};
  bool pinned = false;
  std::optional<SessionParent> parent = {};  // its rows are not written again
  int n_threads = kSessionThreads;
};

/// The header that write_session will write, checksums apart: how large the file gets.
SessionHeader plan_session(const SessionImage& image, const SessionWriteOptions& options);
/// Writes `path` by way of `path.partial`; nothing appears under the name until it is whole and synced.
/// Errors: kIo; the partial file is removed.
Result<SessionHeader> write_session(Storage& storage, const Path& path, const SessionImage& image,
                                    const SessionWriteOptions& options);

/// One file and its parent, opened and their headers checked. Confined.
class SessionReader {
 public:
  /// Reads headers only. Errors say what is wrong with the file, or with its parent: gone, changed, corrupt.
  static Result<SessionReader> open(Storage& storage, const Path& path);

  const SessionHeader& header() const { return header_; }
  const SessionHeader* parent() const { return parent_ ? &*parent_ : nullptr; }

  /// Whether this is a session of such a model and fits such a state: the same facts, all sections, all rows.
  Result<void> check_fits(const SequenceState& state, std::span<const std::string> facts) const;
  /// Reads and checks every byte, and keeps none.
  Result<void> check_payload(int n_threads = kSessionThreads);
  /// check_fits, then the state becomes the file's; `logits` too, empty where the file has none. Where a
  /// section cannot be read or its checksum is wrong, the state is reset; the errors before leave it as it
  /// was. `places`, where asked for, are the file's, ascending.
  Result<void> load(SequenceState& state, std::span<const std::string> facts, std::vector<float>& logits,
                    int n_threads = kSessionThreads, std::vector<Snapshot>* places = nullptr);
  /// A file of the same state that goes on from this one (or from its parent), which must lie beside it.
  Result<void> write_branch(Storage& storage, const Path& path, int n_threads = kSessionThreads);
  /// Everything in one file that needs no parent.
  Result<void> write_whole(Storage& storage, const Path& path, int n_threads = kSessionThreads);

 private:
  struct Target {
    ReadableFile* file;
    const SessionSection* section;
    uint64_t n_wanted;        // of its first bytes
    std::span<std::byte> to;  // n_wanted bytes, or none: only checked
  };
  Result<void> read(std::span<const Target> targets, int n_threads) const;
  /// A file of these sections, whose rows this file and its parent have.
  Result<void> copy(Storage& storage, const Path& path, SessionHeader to, int n_threads) const;

  SessionHeader header_;
  std::unique_ptr<ReadableFile> file_;
  std::optional<SessionHeader> parent_;
  std::unique_ptr<ReadableFile> parent_file_;
};

/// The name of the section with the last token's logits, which a file may have or not.
inline constexpr std::string_view kLogitsSection = "logits";
/// The cells and draft cells of a place, "place.CELLS.DRAFT_CELLS"; nothing for another section's name.
std::string place_section_name(const Snapshot& place);
std::optional<std::pair<int64_t, int64_t>> place_of_section(std::string_view name);

}  // namespace forebay
