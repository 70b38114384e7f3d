#include "server/named_sessions.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/log.h"

namespace forebay {
namespace {

constexpr std::string_view kSuffix = ".session";
constexpr std::chrono::seconds kPatience{60};  // a state of many gigabytes takes its time

Path path_in(const std::string& directory, std::string_view name) {
  return Path(directory) / (std::string(name) + std::string(kSuffix));
}

}  // namespace

Result<void> check_session_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  if (!name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == std::string_view::npos)
    return {};
  return Error{Code::kInvalidArgument, "name: expected 1 to 64 letters, digits, '-' and '_'"};
}

NamedSessions::NamedSessions(Scheduler& scheduler, std::string directory)
    : scheduler_(scheduler), directory_(std::move(directory)), storage_(make_posix_storage()) {}

Result<void> NamedSessions::check() const {
  if (!directory_.empty()) return {};
  return Error{Code::kUnsupported, "sessions: this server keeps none (forebay serve --cache-dir DIR)"};
}

Path NamedSessions::path_of(std::string_view name) const {
  return path_in(directory_, name);
}

Result<int64_t> NamedSessions::save(const std::string& name, std::optional<int64_t> wanted) {
  TRY(check());
  TRY(check_session_name(name));
  TRY(storage_->make_directory(directory_));
  // A task that nobody waits for any more may still run: what it touches must not be ours.
  const auto n_tokens = std::make_shared<int64_t>(0);
  const std::string path = path_of(name).string();
  TRY(scheduler_.run(
      [n_tokens, wanted, path](std::span<const std::unique_ptr<Slot>> slots) -> Result<void> {
        if (wanted && *wanted >= static_cast<int64_t>(slots.size()))
          return Error{Code::kInvalidArgument,
                       fmt::format("slot: {}, expected 0 to {}", *wanted, slots.size() - 1)};
        const Slot* chosen = nullptr;
        for (size_t i = 0; i < slots.size(); ++i) {
          const Slot& slot = *slots[i];
          if (wanted ? static_cast<int64_t>(i) != *wanted : slot.busy() || slot.session.tokens().empty())
            continue;
          if (chosen == nullptr || slot.last_used > chosen->last_used) chosen = &slot;
        }
        if (chosen == nullptr || chosen->session.tokens().empty())
          return Error{Code::kInvalidArgument, "slot: no idle conversation to save"};
        if (chosen->busy()) return Error{Code::kInvalidArgument, "slot: an answer is being made in it"};
        TRY(chosen->session.save(path));
        *n_tokens = static_cast<int64_t>(chosen->session.tokens().size());
        return {};
      },
      kPatience));
  return *n_tokens;
}

Result<int64_t> NamedSessions::restore(const std::string& name) {
  TRY(check());
  TRY(check_session_name(name));
  const Path path = path_of(name);
  if (!storage_->exists(path))
    return Error{Code::kNotFound, fmt::format("name: no session '{}' is saved", name)};
  const auto n_tokens = std::make_shared<int64_t>(0);
  TRY(scheduler_.run(
      [n_tokens, path](std::span<const std::unique_ptr<Slot>> slots) -> Result<void> {
        Slot* oldest = nullptr;
        for (const auto& slot : slots)
          if (!slot->busy() && (oldest == nullptr || slot->last_used < oldest->last_used))
            oldest = slot.get();
        if (oldest == nullptr)
          return Error{Code::kOutOfMemory, "sessions: every conversation is being answered"};
        *n_tokens = TRY(oldest->session.load(path.string()));
        return {};
      },
      kPatience));
  return *n_tokens;
}

Result<std::vector<NamedSessions::Saved>> NamedSessions::list() const {
  TRY(check());
  std::vector<Saved> all;
  const Result<std::vector<FileEntry>> files = storage_->list(directory_);
  if (!files) return all;  // nothing was saved yet
  for (const FileEntry& file : *files)
    if (file.name.ends_with(kSuffix))
      all.push_back({file.name.substr(0, file.name.size() - kSuffix.size()), file.bytes});
  std::sort(all.begin(), all.end(), [](const Saved& a, const Saved& b) { return a.name < b.name; });
  return all;
}

void save_cut_off(const Session& session, size_t slot, const std::string& directory) {
  const size_t n_tokens = session.tokens().size();
  if (n_tokens == 0) return;
  if (directory.empty()) return log::warn("an answer was cut off at {} tokens", n_tokens);
  const std::string name = fmt::format("interrupted-{}", slot);
  const auto write = [&]() -> Result<void> {
    TRY(make_posix_storage()->make_directory(directory));
    return session.save(path_in(directory, name).string());
  };
  if (Result<void> written = write(); written)
    log::warn("an answer was cut off at {} tokens: its conversation is saved as {}", n_tokens, name);
  else
    log::warn("an answer was cut off at {} tokens, its conversation is lost: {}", n_tokens,
              written.error().message);
}

}  // namespace forebay
