/// A directory of session files that keeps itself: what conversations had in memory, found again by the
/// tokens of a prompt, under a byte budget.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/storage.h"
#include "session/session_file.h"

namespace forebay {

struct PrefixStoreOptions {
  Path directory;
  uint64_t max_bytes = 0;          // of all files; 0: no limit
  std::vector<std::string> facts;  // of the model that runs: files with others are ignored, and said to be
  bool recurrent = true;           // else a file is of use for any prefix of its tokens
};

struct PrefixStoreStats {
  uint64_t n_files = 0;
  uint64_t bytes = 0;
  uint64_t n_saved = 0;
  uint64_t n_pruned = 0;
  uint64_t n_discarded = 0;  // corrupt, partial, orphaned
  uint64_t n_not_saved = 0;
};

/// Thread-safe. One directory may be several processes' at once: files appear whole or not at all, writers
/// and cleaners hold a lock file, and a file that another process removed is a miss.
class PrefixStore {
 public:
  /// Reads every file's header. What is corrupt, partial or without its parent is deleted, and the log says
  /// so.
  static Result<std::unique_ptr<PrefixStore>> open(Storage& storage, PrefixStoreOptions options);
  /// Waits for saves under way.
  ~PrefixStore();

  /// What the directory has for a prompt. While it lives, its files are not pruned.
  class Find {
   public:
    Find() = default;
    Find(Find&& other) noexcept;
    Find& operator=(Find&& other) noexcept;
    ~Find();

    int64_t n_usable = 0;  // tokens of the prompt that a file has the state of; 0: none
    std::string name;      // the file
    std::string why_not;   // words, when a file with more of the prompt's tokens is not usable
    /// Where this prompt parts from those of other conversations, if nothing is kept of what they share:
    /// reading should stop there once, and save_shared() be called. 0: nowhere.
    int64_t learn_at = 0;

   private:
    friend class PrefixStore;
    void release();
    PrefixStore* store_ = nullptr;
    std::set<std::string> pinned_;
  };
  /// `own`: names of files of the same conversation, from which it does not part as from another's.
  Find find(std::span<const int32_t> prompt, const std::set<std::string>& own);

  /// Opens a found file; marks it as used. Errors: what changed since. A file that turns out damaged is to be
  /// discarded.
  Result<SessionReader> open_file(const std::string& name);
  void discard(const std::string& name, const std::string& why);

  /// Something to write. The image's state outlives the future.
  struct Save {
    SessionImage image;  // its spans are ignored:
    std::vector<int32_t> tokens;
    std::vector<float> logits;
    bool shared = false;  // a prefix of several conversations: pinned, and other files leave its rows out
  };
  /// Returns at once; the future is ready when the image is not read any more. `name` becomes the file's.
  std::shared_future<void> save(Save save, std::string& name);
  void wait();

  PrefixStoreStats stats();

  static constexpr int64_t kLeastShared = 32;  // tokens

 private:
  struct Entry {
    SessionHeader header;
    uint64_t bytes = 0;
    int64_t used = 0;     // modification time
    std::string why_not;  // facts that differ; empty: usable
  };

  PrefixStore(Storage& storage, PrefixStoreOptions options);
  Result<void> scan(bool clean_partials);
  void scan_locked(const std::vector<FileEntry>& files);
  std::string file_name(std::span<const int32_t> tokens) const;
  void work(const std::stop_token& stop);
  void write(Save& save);
  /// Makes room; false when the rest is needed.
  bool prune(uint64_t bytes_needed, std::span<const int32_t> tokens, const std::set<std::string>& needed);
  int64_t usable(const Entry& entry, std::span<const int32_t> prompt) const;
  Path path_of(const std::string& name) const { return options_.directory / name; }

  Storage& storage_;
  const PrefixStoreOptions options_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, int> pins_;  // by Find
  PrefixStoreStats stats_;
  std::deque<std::packaged_task<void()>> queue_;
  bool writing_ = false;
  std::condition_variable_any changed_;
  std::jthread worker_;  // last: it uses all of the above
};

}  // namespace forebay
