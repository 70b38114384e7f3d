// forebay connect: what a client needs to talk to the server.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/client_config.h"
#include "cli/command.h"
#include "cli/verbosity.h"
#include "core/log.h"
#include "core/storage.h"

namespace forebay::cli {
namespace {

class ConnectCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<Path> file() const;

  std::string client_;
  ClientTarget target_;
  std::optional<std::string> file_;
  bool write_ = false;
  Verbosity verbosity_;
};

void ConnectCommand::declare(FlagTable& flags) {
  flags.section("Client");
  flags.text("CLIENT", "CLIENT", client_,
             "claude, codex, opencode or openai (any program that uses OpenAI's library)");
  flags.text("--url", "URL", target_.url, "where the server listens");
  flags.text("--model", "NAME", target_.model,
             "the name that the client asks for; the server answers to any");
  flags.text("--api-key", "KEY", target_.api_key, "the server's key");
  flags.toggle("--write", write_,
               "put it into the client's file, whose other settings stay; the old file is kept beside it");
  flags.text("--file", "FILE", file_, "that file; absent: where the client looks");
  verbosity_.declare(flags);
}

Result<void> ConnectCommand::check() {
  TRY(verbosity_.check());
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  const std::vector<std::string>& known = client_names();
  if (std::find(known.begin(), known.end(), client_) == known.end())
    return refuse(client_.empty()
                      ? "CLIENT: claude, codex, opencode or openai"
                      : fmt::format("CLIENT: '{}', expected claude, codex, opencode or openai", client_));
  if (!target_.url.starts_with("http://") && !target_.url.starts_with("https://"))
    return refuse(fmt::format("--url: '{}', expected http://HOST:PORT", target_.url));
  while (target_.url.ends_with('/')) target_.url.pop_back();
  if (target_.url.ends_with("/v1")) target_.url.resize(target_.url.size() - 3);
  for (const std::string* text : {&target_.url, &target_.model, &target_.api_key})
    if (text->find_first_of("\n\r\"\\ ") != std::string::npos)
      return refuse(fmt::format("'{}': quotes, blanks and line ends cannot stand in it", *text));
  if (target_.model.empty()) return refuse("--model: an empty name");
  return {};
}

Result<Path> ConnectCommand::file() const {
  const Path path = file_ ? Path(*file_) : client_file(client_);
  if (!path.string().starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == 0)
    return Error{Code::kNotFound, fmt::format("{}: HOME is not set; --file names the file", path.string())};
  return Path(home) / path.string().substr(2);
}

Result<void> write_text(Storage& storage, const Path& path, std::string_view text) {
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  TRY(file.file().append(std::as_bytes(std::span(text))));
  return file.commit();
}

/// FILE.backup, FILE.backup2, ...: an earlier one is not overwritten.
Path backup_of(Storage& storage, const Path& path) {
  Path backup = path.string() + ".backup";
  for (int i = 2; storage.exists(backup); ++i) backup = fmt::format("{}.backup{}", path.string(), i);
  return backup;
}

Result<ExitCode> ConnectCommand::run(const FlagTable&) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  if (!write_) {
    const ClientConfig config = TRY(client_config(client_, target_, std::nullopt));
    fmt::print("{}", config.text);
    log::info("{}: {}; {} (--write puts it there)", client_, file_.value_or(config.file.string()),
              config.how_to);
    return ExitCode::kDone;
  }
  const Path path = TRY(file());
  std::optional<std::string> existing;
  if (storage->exists(path)) existing = TRY(read_text(*storage, path, 16 << 20));
  Result<ClientConfig> config = client_config(client_, target_, existing);
  if (!config) return std::move(config).error().in(path.string());
  if (existing == config->text) {
    fmt::print("{}: nothing to change\n", path.string());
    return ExitCode::kDone;
  }
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return Error{Code::kIo, fmt::format("{}: {}", path.parent_path().string(), error.message())};
  }
  if (existing) {
    const Path backup = backup_of(*storage, path);
    TRY(write_text(*storage, backup, *existing));
    fmt::print("{}: what was there\n", backup.string());
  }
  TRY(write_text(*storage, path, config->text));
  fmt::print("{}: written; {}\n", path.string(), config->how_to);
  return ExitCode::kDone;
}

}  // namespace

CommandInfo connect_command() {
  return {.name = "connect",
          .summary = "configure a client of the server",
          .usage = "[options] CLIENT",
          .examples = {{"forebay connect claude", "print Claude Code's settings"},
                       {"forebay connect codex --write", "put them into ~/.codex/config.toml"},
                       {"forebay connect opencode --url http://box:8080 --api-key KEY --write", ""}},
          .details =
              "Prints the configuration that makes a client use forebay serve, or writes it into the "
              "client's file. "
              "Settings that are not about this server stay as they are.",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<ConnectCommand>()); }};
}

}  // namespace forebay::cli
