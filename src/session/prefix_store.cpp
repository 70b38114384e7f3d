#include "session/prefix_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/hash.h"
#include "core/log.h"

namespace forebay {
namespace {

constexpr std::string_view kSuffix = ".session";
constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kLock = "forebay.lock";

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto parting = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return parting.first - a.begin();
}

/// How the facts of a file differ from ours, or nothing.
std::string difference(const std::vector<std::string>& file, const std::vector<std::string>& ours) {
  for (const std::string& fact : ours)
    if (std::find(file.begin(), file.end(), fact) == file.end()) {
      const std::string key = fact.substr(0, fact.find('=') + 1);
      for (const std::string& other : file)
        if (other.starts_with(key)) return fmt::format("was saved with {}, not {}", other, fact);
      return fmt::format("was saved without {}", fact);
    }
  return file.size() > ours.size() ? "was saved with other options" : "";
}

}  // namespace

PrefixStore::PrefixStore(Storage& storage, PrefixStoreOptions options)
    : storage_(storage), options_(std::move(options)) {}

Result<std::unique_ptr<PrefixStore>> PrefixStore::open(Storage& storage, PrefixStoreOptions options) {
  TRY(storage.make_directory(options.directory));
  std::unique_ptr<PrefixStore> store(new PrefixStore(storage, std::move(options)));
  TRY(store->scan(/*clean_partials=*/true));
  store->worker_ = std::jthread([s = store.get()](const std::stop_token& stop) { s->work(stop); });
  return store;
}

PrefixStore::~PrefixStore() {
  wait();
}

Result<void> PrefixStore::scan(bool clean_partials) {
  const std::vector<FileEntry> files = TRY(storage_.list(options_.directory));
  if (clean_partials) {
    // Whoever writes holds the lock: with it, what is partial is nobody's.
    const std::unique_ptr<FileLock> lock = TRY(storage_.lock(path_of(std::string(kLock)), /*wait=*/false));
    for (const FileEntry& file : files) {
      if (lock == nullptr || !file.name.ends_with(std::string(kSuffix) + std::string(kPartial))) continue;
      // Listed before the lock was ours, it may have been finished since: removing nothing is fine.
      if (storage_.remove(path_of(file.name))) {
        log::warn("{}: deleted, its writer did not finish", path_of(file.name).string());
        ++stats_.n_discarded;
      }
    }
  }
  const std::lock_guard guard(mutex_);
  scan_locked(files);
  return {};
}

void PrefixStore::scan_locked(const std::vector<FileEntry>& files) {
  std::set<std::string> present;
  for (const FileEntry& file : files) {
    if (!file.name.ends_with(kSuffix)) continue;
    present.insert(file.name);
    const auto known = entries_.find(file.name);
    if (known != entries_.end() && known->second.bytes == file.bytes) {
      known->second.used = file.modified;
      continue;
    }
    Result<SessionHeader> header = read_session_header(storage_, path_of(file.name));
    if (header) {
      std::string why_not = difference(header->facts, options_.facts);
      entries_.insert_or_assign(
          file.name, Entry{std::move(header).value(), file.bytes, file.modified, std::move(why_not)});
    } else if (header.error().code == Code::kCorrupt) {
      log::warn("deleted: {}", header.error().message);
      if (storage_.remove(path_of(file.name))) ++stats_.n_discarded;
      present.erase(file.name);
    } else if (header.error().code != Code::kNotFound) {
      log::info("ignored: {}", header.error().message);
      present.erase(file.name);
    }
  }
  std::erase_if(entries_, [&](const auto& entry) { return !present.contains(entry.first); });
  std::erase_if(entries_, [&](const auto& entry) {
    const SessionHeader& h = entry.second.header;
    if (h.parent.empty()) return false;
    const auto parent = entries_.find(h.parent);
    if (parent != entries_.end() && parent->second.header.checksum == h.parent_checksum) return false;
    log::warn("{}: deleted, its parent {} is {}", path_of(entry.first).string(), h.parent,
              parent == entries_.end() ? "gone" : "another file than it was");
    if (storage_.remove(path_of(entry.first))) ++stats_.n_discarded;
    return true;
  });
}

int64_t PrefixStore::usable(const Entry& entry, std::span<const int32_t> prompt) const {
  const int64_t common = common_prefix(entry.header.tokens, prompt);
  const auto n_prompt = static_cast<int64_t>(prompt.size());
  const bool whole = common == entry.header.n_cells();
  if (whole && (common < n_prompt || entry.header.find(kLogitsSection) != nullptr)) return common;
  // The last token's logits have to be computed.
  return options_.recurrent ? 0 : std::min(common, n_prompt - 1);
}

PrefixStore::Find PrefixStore::find(std::span<const int32_t> prompt, const std::set<std::string>& own) {
  Find found;
  if (Result<void> scanned = scan(/*clean_partials=*/false); !scanned) {
    found.why_not = scanned.error().message;
    return found;
  }
  const std::lock_guard guard(mutex_);
  int64_t parts_at = 0, best_unusable = 0;
  const Entry* best = nullptr;
  for (const auto& [name, entry] : entries_) {
    const int64_t common = common_prefix(entry.header.tokens, prompt);
    if (!entry.why_not.empty()) {
      if (common == entry.header.n_cells() && common > best_unusable) {
        best_unusable = common;
        found.why_not = fmt::format("{}, which has {} of the tokens, {}", name, common, entry.why_not);
      }
      continue;
    }
    const int64_t n = usable(entry, prompt);
    if (n > found.n_usable) {
      found.n_usable = n;
      found.name = name;
      best = &entry;
    }
    if (common < entry.header.n_cells() && common < static_cast<int64_t>(prompt.size()) &&
        !own.contains(name))
      parts_at = std::max(parts_at, common);
  }
  if (best_unusable <= found.n_usable) found.why_not.clear();
  // On an index block's border, so that what begins there shares whole blocks.
  parts_at -= parts_at % 4;
  if (options_.recurrent && parts_at >= kLeastShared && parts_at >= found.n_usable + kLeastShared)
    found.learn_at = parts_at;
  if (best != nullptr) {
    found.store_ = this;
    found.pinned_ = {found.name};
    if (!best->header.parent.empty()) found.pinned_.insert(best->header.parent);
    for (const std::string& name : found.pinned_) ++pins_[name];
  }
  return found;
}

PrefixStore::Find::Find(Find&& other) noexcept {
  *this = std::move(other);
}
PrefixStore::Find& PrefixStore::Find::operator=(Find&& other) noexcept {
  if (this == &other) return *this;
  release();
  n_usable = other.n_usable;
  name = std::move(other.name);
  why_not = std::move(other.why_not);
  learn_at = other.learn_at;
  store_ = std::exchange(other.store_, nullptr);
  pinned_ = std::move(other.pinned_);
  return *this;
}
PrefixStore::Find::~Find() {
  release();
}
void PrefixStore::Find::release() {
  if (store_ == nullptr) return;
  const std::lock_guard guard(store_->mutex_);
  for (const std::string& pinned : pinned_)
    if (--store_->pins_[pinned] == 0) store_->pins_.erase(pinned);
  store_ = nullptr;
}

Result<SessionReader> PrefixStore::open_file(const std::string& name) {
  Result<SessionReader> reader = SessionReader::open(storage_, path_of(name));
  if (!reader) return reader;
  const std::string& parent = reader->header().parent;
  for (const std::string& used : {name, parent})
    if (!used.empty())
      if (Result<void> touched = storage_.touch(path_of(used)); !touched)
        log::debug("{}", touched.error().message);
  return reader;
}

void PrefixStore::discard(const std::string& name, const std::string& why) {
  log::warn("{}: deleted: {}", path_of(name).string(), why);
  const std::lock_guard guard(mutex_);
  entries_.erase(name);
  if (storage_.remove(path_of(name))) ++stats_.n_discarded;
}

std::string PrefixStore::file_name(std::span<const int32_t> tokens) const {
  std::vector<std::byte> bytes;
  for (const std::string& fact : options_.facts) {
    const auto text = std::as_bytes(std::span(fact));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  for (int32_t token : tokens) put_le(bytes, static_cast<uint32_t>(token));
  return fmt::format("{:016x}-{}{}", fast_checksum(bytes), tokens.size(), kSuffix);
}

std::shared_future<void> PrefixStore::save(Save save, std::string& name) {
  name = file_name(save.tokens);
  std::packaged_task<void()> task([this, s = std::make_shared<Save>(std::move(save))] {
    s->image.tokens = s->tokens;
    s->image.logits = s->logits;
    write(*s);
  });
  std::shared_future<void> done = task.get_future().share();
  {
    const std::lock_guard guard(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_all();
  return done;
}

void PrefixStore::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !writing_; });
}

void PrefixStore::work(const std::stop_token& stop) {
  while (true) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
    }
    task();
    {
      const std::lock_guard guard(mutex_);
      writing_ = false;
    }
    changed_.notify_all();
  }
}

void PrefixStore::write(Save& save) {
  const auto not_saved = [&](const std::string& why) {
    log::warn("{}: {} tokens not saved: {}", options_.directory.string(), save.tokens.size(), why);
    const std::lock_guard guard(mutex_);
    ++stats_.n_not_saved;
  };
  Result<std::unique_ptr<FileLock>> lock = storage_.lock(path_of(std::string(kLock)), /*wait=*/true);
  if (!lock) return not_saved(lock.error().message);
  if (Result<void> scanned = scan(/*clean_partials=*/false); !scanned)
    return not_saved(scanned.error().message);

  const std::string name = file_name(save.tokens);
  SessionWriteOptions options{.facts = options_.facts, .pinned = save.shared};
  std::set<std::string> needed;
  {
    const std::lock_guard guard(mutex_);
    if (const auto known = entries_.find(name);
        known != entries_.end() && known->second.header.pinned >= save.shared) {
      if (Result<void> touched = storage_.touch(path_of(name)); !touched)
        log::debug("{}", touched.error().message);
      return;
    }
    for (const auto& [other, entry] : entries_) {
      const SessionHeader& h = entry.header;
      if (save.shared || !h.pinned || !h.parent.empty() || !entry.why_not.empty()) continue;
      if (options.parent && options.parent->header.n_cells() >= h.n_cells()) continue;
      if (h.n_cells() <= static_cast<int64_t>(save.tokens.size()) &&
          common_prefix(h.tokens, save.tokens) == h.n_cells())
        options.parent = SessionParent{other, h};
    }
    if (options.parent) needed.insert(options.parent->name);
  }
  const SessionHeader plan = plan_session(save.image, options);
  if (!prune(plan.file_bytes, save.tokens, needed))
    return not_saved(fmt::format("{} bytes do not fit beside what is needed (--cache-size is {})",
                                 plan.file_bytes, options_.max_bytes));
  Result<SessionHeader> written = write_session(storage_, path_of(name), save.image, options);
  if (!written) return not_saved(written.error().message);
  const std::lock_guard guard(mutex_);
  const uint64_t bytes = written->file_bytes;
  entries_.insert_or_assign(name, Entry{std::move(written).value(), bytes, INT64_MAX, {}});
  ++stats_.n_saved;
}

bool PrefixStore::prune(uint64_t bytes_needed, std::span<const int32_t> tokens,
                        const std::set<std::string>& needed) {
  if (options_.max_bytes == 0) return true;
  if (bytes_needed > options_.max_bytes) return false;
  const std::lock_guard guard(mutex_);
  uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry.bytes;
  std::vector<std::string> leaving;
  std::set<std::string> gone;
  while (bytes + bytes_needed > options_.max_bytes) {
    std::map<std::string, int> n_children;
    for (const auto& [name, entry] : entries_)
      if (!gone.contains(name)) ++n_children[entry.header.parent];
    // The lowest leaves: files of other models, what the new file goes on from, then by last use; pinned ones
    // last.
    const auto rank = [&](const Entry& e) {
      const bool superseded =
          !e.header.pinned && common_prefix(e.header.tokens, tokens) == e.header.n_cells();
      return std::pair(!e.why_not.empty() ? 0 : superseded ? 1 : !e.header.pinned ? 2 : 3, e.used);
    };
    const std::string* least = nullptr;
    for (const auto& [name, entry] : entries_) {
      if (gone.contains(name) || needed.contains(name) || pins_.contains(name) || n_children.contains(name))
        continue;
      if (least == nullptr || rank(entry) < rank(entries_.at(*least))) least = &name;
    }
    if (least == nullptr) return false;
    gone.insert(*least);
    leaving.push_back(*least);
    bytes -= entries_.at(*least).bytes;
  }
  for (const std::string& name : leaving) {
    log::debug("{}: pruned", path_of(name).string());
    if (!storage_.remove(path_of(name))) log::debug("{}: was gone already", path_of(name).string());
    entries_.erase(name);
    ++stats_.n_pruned;
  }
  return true;
}

PrefixStoreStats PrefixStore::stats() {
  const std::lock_guard guard(mutex_);
  PrefixStoreStats stats = stats_;
  stats.n_files = entries_.size();
  for (const auto& [name, entry] : entries_) stats.bytes += entry.bytes;
  return stats;
}

}  // namespace forebay
