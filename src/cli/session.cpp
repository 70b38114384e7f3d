// forebay session: files with the state of a conversation.
#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/json_writer.h"
#include "cli/model_location.h"
#include "cli/verbosity.h"
#include "core/format.h"
#include "gguf/fingerprint.h"
#include "session/session_file.h"

namespace forebay::cli {
namespace {

const std::vector<std::string> kActions = {"list", "show", "check", "rm", "export", "fork"};

class SessionCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<ExitCode> list();
  Result<ExitCode> show();
  Result<ExitCode> check_file();
  Result<ExitCode> remove();
  Result<ExitCode> export_whole();
  Result<ExitCode> fork();
  Result<void> check_usable(const Path& path);

  std::vector<std::string> words_;  // the action and its files
  std::string output_;
  std::string model_;
  bool json_ = false;
  Verbosity verbosity_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

void SessionCommand::declare(FlagTable& flags) {
  flags.many("ACTION", "", words_,
             "list [DIR], show FILE, check FILE, rm FILE..., export FILE -o NEW, fork FILE -o NEW");
  flags.text("-o,--output", "FILE", output_, "with export and fork: the file to write");
  flags.text("-m,--model", "FILE", model_, "with check: whether it is a session of this model, too");
  flags.toggle("--json", json_, "print one JSON object");
  verbosity_.declare(flags);
}

Result<void> SessionCommand::check() {
  TRY(verbosity_.check());
  const auto refuse = [](std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; };
  if (words_.empty()) return refuse("no action: list, show, check, rm, export or fork");
  const std::string& action = words_[0];
  if (std::find(kActions.begin(), kActions.end(), action) == kActions.end())
    return refuse(fmt::format("'{}': expected list, show, check, rm, export or fork", action));
  if (action == "list") {
    if (words_.size() > 2) return refuse("list takes one directory");
  } else if (words_.size() < 2 || (words_.size() > 2 && action != "rm")) {
    return refuse(fmt::format("{} takes {}", action, action == "rm" ? "one or more files" : "one file"));
  }
  const bool writes = action == "export" || action == "fork";
  if (writes == output_.empty()) return refuse(writes ? action + " needs -o" : "-o is for export and fork");
  if (!model_.empty() && action != "check") return refuse("-m is for check");
  return {};
}

Result<ExitCode> SessionCommand::run(const FlagTable& flags) {
  log_settings(flags);
  const std::string& action = words_[0];
  if (action == "list") return list();
  if (action == "show") return show();
  if (action == "check") return check_file();
  if (action == "rm") return remove();
  if (action == "export") return export_whole();
  return fork();
}

std::string fact(const SessionHeader& h, std::string_view key) {
  for (const std::string& f : h.facts)
    if (f.starts_with(key) && f.size() > key.size() && f[key.size()] == '=') return f.substr(key.size() + 1);
  return "";
}

Result<ExitCode> SessionCommand::list() {
  const Path directory = words_.size() > 1 ? words_[1] : ".";
  std::vector<FileEntry> files = TRY(storage_->list(directory));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.modified > b.modified; });
  JsonWriter json;
  json.begin_object();
  json.key("sessions").begin_array();
  size_t n = 0;
  for (const FileEntry& file : files) {
    const Result<SessionHeader> header = read_session_header(*storage_, directory / file.name);
    // Other files may lie in the same place; what is named as ours is mentioned.
    if (!header && !file.name.ends_with(".session")) continue;
    ++n;
    if (json_) {
      json.begin_object();
      json.key("file").string(file.name);
      json.key("bytes").integer(file.bytes);
      if (header) {
        json.key("tokens").integer(header->n_cells());
        json.key("model").string(fact(*header, "name"));
        json.key("pinned").boolean(header->pinned);
        if (!header->parent.empty()) json.key("parent").string(header->parent);
      } else {
        json.key("error").string(header.error().message);
      }
      json.end_object();
    } else if (header) {
      fmt::print("{:<40} {:>8} tokens {:>10}  {}{}{}\n", file.name, header->n_cells(),
                 human_bytes(file.bytes), fact(*header, "name"), header->pinned ? ", shared prefix" : "",
                 header->parent.empty() ? "" : ", after " + header->parent);
    } else {
      fmt::print("{:<40} {}\n", file.name, header.error().message);
    }
  }
  json.end_array().end_object();
  if (json_) fmt::print("{}\n", json.text());
  if (!json_ && n == 0) fmt::print("no sessions in {}\n", directory.string());
  return ExitCode::kDone;
}

Result<ExitCode> SessionCommand::show() {
  const SessionHeader h = TRY(read_session_header(*storage_, words_[1]));
  if (json_) {
    JsonWriter json;
    json.begin_object();
    json.key("file").string(words_[1]);
    json.key("bytes").integer(h.file_bytes);
    json.key("checksum").string(fmt::format("{:016x}", h.checksum));
    json.key("pinned").boolean(h.pinned);
    if (!h.parent.empty()) json.key("parent").string(h.parent);
    json.key("draft_cells").integer(h.n_mtp_cells);
    json.key("facts").begin_object();
    for (const std::string& f : h.facts) json.key(f.substr(0, f.find('='))).string(f.substr(f.find('=') + 1));
    json.end_object();
    json.key("sections").begin_array();
    for (const SessionSection& s : h.sections) {
      json.begin_object();
      json.key("name").string(s.name);
      json.key("offset").integer(s.offset);
      json.key("row_bytes").integer(s.row_bytes);
      json.key("first_row").integer(s.first_row);
      json.key("rows").integer(s.n_rows);
      json.end_object();
    }
    json.end_array();
    json.key("ids").begin_array();
    for (int32_t id : h.tokens) json.integer(id);
    json.end_array().end_object();
    fmt::print("{}\n", json.text());
    return ExitCode::kDone;
  }
  fmt::print("{}: {} tokens, {}{}\n", words_[1], h.n_cells(), human_bytes(h.file_bytes),
             h.pinned ? ", a shared prefix" : "");
  if (!h.parent.empty()) fmt::print("goes on from {}\n", h.parent);
  for (const std::string& f : h.facts) fmt::print("  {}\n", f);
  fmt::print("{:<28} {:>10} {:>10} {:>12}\n", "section", "first row", "rows", "row bytes");
  for (const SessionSection& s : h.sections)
    fmt::print("{:<28} {:>10} {:>10} {:>12}\n", s.name, s.first_row, s.n_rows, s.row_bytes);
  return ExitCode::kDone;
}

Result<void> SessionCommand::check_usable(const Path& path) {
  SessionReader reader = TRY(SessionReader::open(*storage_, path));
  if (!model_.empty()) {
    const GgufFile model = TRY(GgufFile::open(*storage_, model_));
    const std::string ours = fmt::format("{:016x}", fingerprint(model)),
                      saved = fact(reader.header(), "model");
    if (saved != ours)
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: a session of {} ({}), {} is another model ({})", path.string(),
                               fact(reader.header(), "name"), saved, model_, ours)};
  }
  return reader.check_payload();
}

Result<ExitCode> SessionCommand::check_file() {
  const Result<void> usable = check_usable(words_[1]);
  if (json_) {
    JsonWriter json;
    json.begin_object();
    json.key("file").string(words_[1]);
    json.key("usable").boolean(usable.has_value());
    if (!usable) json.key("reason").string(usable.error().message);
    json.end_object();
    fmt::print("{}\n", json.text());
  } else {
    fmt::print("{}\n", usable ? words_[1] + ": usable" : usable.error().message);
  }
  return usable ? ExitCode::kDone : ExitCode::kFailed;
}

Result<ExitCode> SessionCommand::remove() {
  for (size_t i = 1; i < words_.size(); ++i) {
    const Path path = words_[i];
    // A mistyped name must not cost a file that is none of ours.
    Result<SessionHeader> header = read_session_header(*storage_, path);
    if (!header && !path.string().ends_with(".session")) return std::move(header).error();
    const Path directory = path.has_parent_path() ? path.parent_path() : Path(".");
    for (const FileEntry& other : TRY(storage_->list(directory)))
      if (const Result<SessionHeader> child = read_session_header(*storage_, directory / other.name);
          child && child->parent == path.filename() &&
          std::find(words_.begin(), words_.end(), (path.parent_path() / other.name).string()) == words_.end())
        return Error{Code::kInvalidArgument,
                     fmt::format("{}: {} goes on from it; name both, or export that first", path.string(),
                                 other.name)};
    TRY(storage_->remove(path));
  }
  return ExitCode::kDone;
}

Result<ExitCode> SessionCommand::export_whole() {
  SessionReader reader = TRY(SessionReader::open(*storage_, words_[1]));
  TRY(reader.write_whole(*storage_, output_));
  return ExitCode::kDone;
}

Result<ExitCode> SessionCommand::fork() {
  SessionReader reader = TRY(SessionReader::open(*storage_, words_[1]));
  TRY(reader.write_branch(*storage_, output_));
  return ExitCode::kDone;
}

}  // namespace

CommandInfo session_command() {
  return {
      .name = "session",
      .summary = "saved states of conversations",
      .usage = "ACTION [FILE...]",
      .examples = {{"forebay session list ~/.cache/forebay", "what --cache-dir keeps"},
                   {"forebay session check chat.session", "exit code 0: every byte is as it was written"},
                   {"forebay session fork chat.session -o other.session", "another way to go on"}},
      .details =
          "run --save-session writes such files and --load-session goes on from them, bit for bit. check "
          "says "
          "why a file is unusable and exits with 1; with -m, whether it belongs to that model. export makes "
          "a file that needs no other; fork makes one that has only what its parent, in the same directory, "
          "has not.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<SessionCommand>()); }};
}

}  // namespace forebay::cli
