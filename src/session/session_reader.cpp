#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/hash.h"
#include "core/parse.h"
#include "session/pieces.h"
#include "session/session_file.h"

namespace forebay {
namespace {

std::string_view key_of(std::string_view fact) {
  return fact.substr(0, fact.find('='));
}
std::string_view value_of(std::string_view fact) {
  const size_t at = fact.find('=');
  return at == std::string_view::npos ? "" : fact.substr(at + 1);
}

Result<void> check_facts(std::span<const std::string> file, std::span<const std::string> model) {
  const auto find = [](std::span<const std::string> facts, std::string_view key) -> std::string_view {
    for (const std::string& fact : facts)
      if (key_of(fact) == key) return value_of(fact);
    return "nothing";
  };
  for (const std::string& fact : model)
    if (const std::string_view saved = find(file, key_of(fact)); saved != value_of(fact))
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: saved with {}, this run has {}", key_of(fact), saved, value_of(fact))};
  for (const std::string& fact : file)
    if (find(model, key_of(fact)) != value_of(fact))
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: saved with {}, this run has nothing", key_of(fact), value_of(fact))};
  return {};
}

constexpr std::string_view kPlacePrefix = "place.";

}  // namespace

std::string place_section_name(const Snapshot& place) {
  return fmt::format("{}{}.{}", kPlacePrefix, place.n_cells, place.n_mtp_cells);
}

std::optional<std::pair<int64_t, int64_t>> place_of_section(std::string_view name) {
  if (!name.starts_with(kPlacePrefix)) return std::nullopt;
  name.remove_prefix(kPlacePrefix.size());
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const Result<int64_t> cells = parse_int(name.substr(0, dot), 0), draft = parse_int(name.substr(dot + 1), 0);
  if (!cells || !draft) return std::nullopt;
  return std::pair(*cells, *draft);
}

Result<SessionReader> SessionReader::open(Storage& storage, const Path& path) {
  SessionReader reader;
  reader.file_ = TRY(storage.open_direct(path));
  reader.header_ = TRY(read_session_header(*reader.file_));
  const SessionHeader& h = reader.header_;
  if (h.parent.empty()) return reader;

  const auto unusable = [&](std::string why) {
    return Error{Code::kNotFound, fmt::format("{}: its parent {} {}", path.string(), h.parent, why)};
  };
  const Path beside = path.parent_path() / h.parent;
  Result<std::unique_ptr<ReadableFile>> file = storage.open_direct(beside);
  if (!file) return unusable(file.error().code == Code::kNotFound ? "is gone" : file.error().message);
  reader.parent_file_ = std::move(file).value();
  Result<SessionHeader> parent = read_session_header(*reader.parent_file_);
  if (!parent) return unusable("is not usable: " + parent.error().message);
  if (parent->checksum != h.parent_checksum) return unusable("is another file than it was");
  if (!parent->parent.empty()) return unusable("has a parent itself");
  const auto parting =
      std::mismatch(parent->tokens.begin(), parent->tokens.end(), h.tokens.begin(), h.tokens.end());
  for (const SessionSection& s : h.sections) {
    if (s.first_row == 0) continue;
    const SessionSection* rows = parent->find(s.name);
    if (rows == nullptr || rows->row_bytes != s.row_bytes || rows->end_row() < s.first_row)
      return unusable(fmt::format("lacks the first {} rows of '{}'", s.first_row, s.name));
    // A row holds the state of at least one cell.
    if (s.first_row > static_cast<uint64_t>(parting.first - parent->tokens.begin()))
      return unusable("is of other tokens");
  }
  reader.parent_ = std::move(parent).value();
  return reader;
}

Result<void> SessionReader::check_fits(const SequenceState& state, std::span<const std::string> facts) const {
  const auto refuse = [&](std::string why) {
    return Error{Code::kInvalidArgument, fmt::format("{}: {}", file_->path().string(), why)};
  };
  if (Result<void> same = check_facts(header_.facts, facts); !same) return refuse(same.error().message);
  if (header_.n_cells() > state.context())
    return refuse(fmt::format("{} tokens, the context holds {} (--context raises it)", header_.n_cells(),
                              state.context()));
  size_t n_known = 0;
  for (const StateSection& s : state.sections()) {
    const SessionSection* saved = header_.find(s.name);
    if (saved == nullptr) return refuse(fmt::format("section '{}' is missing", s.name));
    if (saved->cells_per_row != s.cells_per_row || saved->draft != s.draft)
      return refuse(fmt::format("section '{}': a row for {} cells, expected {}", s.name, saved->cells_per_row,
                                s.cells_per_row));
    if (saved->row_bytes != s.row_bytes)
      return refuse(
          fmt::format("section '{}': rows of {} bytes, expected {}", s.name, saved->row_bytes, s.row_bytes));
    const auto n_rows = static_cast<uint64_t>(s.n_rows(header_.n_cells(), header_.n_mtp_cells));
    if (saved->end_row() != n_rows)
      return refuse(fmt::format("section '{}': {} rows, {} tokens need {}", s.name, saved->end_row(),
                                header_.n_cells(), n_rows));
    ++n_known;
  }
  for (const SessionSection& s : header_.sections) {
    const auto place = place_of_section(s.name);
    n_known += s.name == kLogitsSection || place;
    if (!place) continue;
    const auto [cells, draft] = *place;
    if (s.bytes() != state.fixed_bytes() || cells < 1 || cells > header_.n_cells() ||
        draft > std::min(cells, header_.n_mtp_cells))
      return refuse(fmt::format("section '{}': {} bytes of {} cells, expected {} of at most {}", s.name,
                                s.bytes(), cells, state.fixed_bytes(), header_.n_cells()));
  }
  if (n_known != header_.sections.size())
    for (const SessionSection& s : header_.sections)
      if (s.name != kLogitsSection && !place_of_section(s.name) &&
          std::none_of(state.sections().begin(), state.sections().end(),
                       [&](const auto& t) { return t.name == s.name; }))
        return refuse(fmt::format("section '{}' is none of this model's", s.name));
  return {};
}

Result<void> SessionReader::read(std::span<const Target> targets, int n_threads) const {
  struct Job {
    size_t target;
    uint64_t piece;
  };
  std::vector<PieceSums> sums;
  std::vector<Job> jobs;
  for (size_t i = 0; i < targets.size(); ++i) {
    sums.emplace_back(targets[i].section->bytes());
    for (uint64_t p = 0; p < sums[i].n_pieces(); ++p) jobs.push_back({i, p});
  }
  const auto read_piece = [&](size_t i, std::span<std::byte> block) -> Result<void> {
    const Target& t = targets[jobs[i].target];
    const uint64_t first = jobs[i].piece * kPieceBytes;
    const uint64_t n = std::min(kPieceBytes, t.section->bytes() - first);
    const std::span<const std::byte> bytes = TRY(t.file->read_around(t.section->offset + first, n, block));
    sums[jobs[i].target].set(jobs[i].piece, fast_checksum(bytes));
    if (!t.to.empty() && first < t.n_wanted)
      std::memcpy(t.to.data() + first, bytes.data(), std::min(n, t.n_wanted - first));
    return {};
  };
  TRY(for_each_piece(jobs.size(), n_threads, read_piece));
  for (size_t i = 0; i < targets.size(); ++i)
    if (const uint64_t sum = sums[i].total(); sum != targets[i].section->checksum)
      return Error{Code::kCorrupt, fmt::format("{}: section '{}': checksum {:016x}, its bytes give {:016x}",
                                               targets[i].file->path().string(), targets[i].section->name,
                                               targets[i].section->checksum, sum)};
  return {};
}

Result<void> SessionReader::check_payload(int n_threads) {
  std::vector<Target> targets;
  for (const SessionSection& s : header_.sections) {
    targets.push_back({file_.get(), &s, 0, {}});
    if (s.first_row > 0) targets.push_back({parent_file_.get(), parent_->find(s.name), 0, {}});
  }
  return read(targets, n_threads);
}

Result<void> SessionReader::load(SequenceState& state, std::span<const std::string> facts,
                                 std::vector<float>& logits, int n_threads, std::vector<Snapshot>* places) {
  TRY(check_fits(state, facts));
  std::vector<Target> targets;
  for (const StateSection& to : state.sections()) {
    const SessionSection& s = *header_.find(to.name);
    const uint64_t before = s.first_row * s.row_bytes;
    if (before > 0)
      targets.push_back({parent_file_.get(), parent_->find(s.name), before, to.bytes.first(before)});
    if (s.n_rows > 0) targets.push_back({file_.get(), &s, s.bytes(), to.bytes.subspan(before, s.bytes())});
  }
  logits.clear();
  if (const SessionSection* s = header_.find(kLogitsSection)) {
    logits.resize(s->bytes() / sizeof(float));
    targets.push_back(
        {file_.get(), s, logits.size() * sizeof(float), std::as_writable_bytes(std::span(logits))});
  }
  std::vector<Snapshot> read_places;
  for (const SessionSection& s : header_.sections)
    if (const auto place = place_of_section(s.name); place && places != nullptr)
      read_places.push_back({place->first, place->second, {}, std::vector<float>(s.bytes() / sizeof(float))});
  size_t n_read = 0;
  for (const SessionSection& s : header_.sections)
    if (place_of_section(s.name) && places != nullptr) {
      std::vector<float>& to = read_places[n_read++].fixed;
      targets.push_back({file_.get(), &s, s.bytes(), std::as_writable_bytes(std::span(to))});
    }
  if (Result<void> done = read(targets, n_threads); !done) {
    state.reset();
    logits.clear();
    return done;
  }
  state.adopt(header_.tokens, header_.n_mtp_cells);
  if (places == nullptr) return {};
  const auto n_tail = static_cast<int64_t>(state.token_tail().size());
  for (Snapshot& place : read_places) {
    const auto end = header_.tokens.begin() + place.n_cells;
    place.token_tail.assign(end - std::min(place.n_cells, n_tail), end);
  }
  std::sort(read_places.begin(), read_places.end(),
            [](const Snapshot& a, const Snapshot& b) { return a.n_cells < b.n_cells; });
  *places = std::move(read_places);
  return {};
}

}  // namespace forebay
