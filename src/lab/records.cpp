#include "lab/records.h"

#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/sha256.h"

namespace forebay::lab {
namespace {

/// Whatever bytes a message holds, the line is UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string hash_of(const Json& without_hash) {
  const std::string text = text_of(without_hash);
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace

Result<Records> Records::open(Storage& storage, const Path& path) {
  Records out(storage, path);
  if (!storage.exists(path)) return out;
  const std::string text = TRY(read_text(storage, path));
  bool damaged = false;  // the line before, which only a "torn" record excuses
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = text.find('\n', begin);
    const size_t end = newline == std::string::npos ? text.size() : newline;
    out.line_open_ = newline == std::string::npos;
    ++number;
    const auto wrong = [&](std::string_view what) {
      return Error{Code::kCorrupt,
                   fmt::format("{}:{}: {}: records are added to, not edited", path.string(), number, what)};
    };
    Json record = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    begin = end + 1;
    const bool sound = record.is_object() && record.contains("hash") && record["hash"].is_string() &&
                       record.contains("kind") && record["kind"].is_string();
    if (!sound) {
      if (damaged) return wrong("no record");
      damaged = true;
      continue;
    }
    const std::string hash = record["hash"].get<std::string>();
    record.erase("hash");
    if (hash_of(record) != hash) return wrong("the hash is not that of the line");
    if (record.value("before", std::string()) != out.last_hash_)
      return wrong("it does not follow the line before");
    if (damaged && record["kind"] != "torn") return wrong("the line before is no record");
    damaged = false;
    out.last_hash_ = hash;
    record["hash"] = hash;
    out.records_.push_back(std::move(record));
  }
  // The last line may be what a crash left.
  out.torn_ = damaged;
  return out;
}

Result<void> Records::append(std::string_view kind, const Json& body) {
  if (std::exchange(line_open_, false)) TRY(write("\n"));
  if (std::exchange(torn_, false)) {
    TRY(append("torn", {{"note", "the line above was cut short when the program died"}}));
  }
  Json record = {{"kind", kind}};
  record.update(body);
  record["n"] = records_.size();
  record["time"] = utc_now();
  record["before"] = last_hash_;
  const std::string hash = hash_of(record);
  record["hash"] = hash;
  TRY(write(text_of(record) + "\n"));
  last_hash_ = hash;
  records_.push_back(std::move(record));
  return {};
}

Result<void> Records::write(std::string_view line) {
  const std::unique_ptr<WritableFile> file = TRY(storage_->open_to_append(path_));
  TRY(file->append(std::as_bytes(std::span(line))));
  TRY(file->sync());
  return file->close();
}

const Json* Records::last(std::string_view kind, std::string_view member, std::string_view value) const {
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if ((*record)["kind"] != kind) continue;
    const auto found = record->find(member);
    if (found != record->end() && found->is_string() && found->get_ref<const std::string&>() == value)
      return &*record;
  }
  return nullptr;
}

}  // namespace forebay::lab
