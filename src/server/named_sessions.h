/// Conversations that clients save under a name and come back to.
#pragma once

#include <string>
#include <vector>

#include "core/storage.h"
#include "server/scheduler.h"

namespace forebay {

/// 1 to 64 letters, digits, '-' and '_': nothing that could be a path. Errors: kInvalidArgument, "name: ...".
Result<void> check_session_name(std::string_view name);

/// Files of one directory, which only names reach. Thread-safe.
class NamedSessions {
 public:
  /// Without a directory every call is refused: kUnsupported.
  NamedSessions(Scheduler& scheduler, std::string directory);

  struct Saved {
    std::string name;
    uint64_t bytes = 0;
  };
  /// Writes the state of an idle slot, by default the one used last; returns its tokens.
  /// Errors: kInvalidArgument naming the field; kIo.
  Result<int64_t> save(const std::string& name, std::optional<int64_t> slot);
  /// Into the idle slot used longest ago; returns its tokens. Errors: kNotFound, kIo, what is wrong with the
  /// file.
  Result<int64_t> restore(const std::string& name);
  Result<std::vector<Saved>> list() const;

 private:
  Result<void> check() const;
  Path path_of(std::string_view name) const;

  Scheduler& scheduler_;
  const std::string directory_;
  const std::unique_ptr<Storage> storage_;
};

/// At the server's end: the conversation in slot `slot`, whose answer was cut off, under the name
/// "interrupted-SLOT" that the log says. On the engine's thread. Without a directory nothing is kept.
void save_cut_off(const Session& session, size_t slot, const std::string& directory);

}  // namespace forebay
