#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <numeric>

#include <fmt/format.h>

#include "core/ensure.h"
#include "core/hash.h"
#include "core/page_range.h"
#include "session/pieces.h"
#include "session/session_file.h"
#include "session/session_format.h"

namespace forebay {
namespace {

int64_t n_mtp_cells(const SessionImage& image) {
  return image.snapshot ? image.snapshot->n_mtp_cells : image.state->n_mtp_cells();
}

/// Cells that the parent has for the child, a multiple of 4 and of what an index block has: none is cut.
int64_t shared_cells(const SessionImage& image, const SessionWriteOptions& options) {
  if (!options.parent) return 0;
  int64_t block = 4;
  for (const StateSection& s : image.state->sections())
    if (!s.is_fixed()) block = std::lcm(block, s.cells_per_row);
  const int64_t n = std::min(options.parent->header.n_cells(), static_cast<int64_t>(image.tokens.size()));
  return n - n % block;
}

/// What the bytes of each section of the plan are.
std::vector<std::span<const std::byte>> sources_of(const SessionImage& image, const SessionHeader& plan) {
  std::vector<std::span<const std::byte>> sources;
  for (const StateSection& s : image.state->sections()) {
    const SessionSection& section = plan.sections[sources.size()];
    if (s.is_fixed() && image.snapshot)
      sources.push_back(image.state->bytes_in(*image.snapshot, s).first(section.bytes()));
    else
      sources.push_back(s.bytes.subspan(section.first_row * section.row_bytes, section.bytes()));
  }
  if (!image.logits.empty()) sources.push_back(std::as_bytes(image.logits));
  for (const auto& place : image.places) sources.push_back(std::as_bytes(std::span(place->fixed)));
  return sources;
}

}  // namespace

SessionHeader plan_session(const SessionImage& image, const SessionWriteOptions& options) {
  const auto n_cells = static_cast<int64_t>(image.tokens.size());
  ENSURE(n_cells == (image.snapshot ? image.snapshot->n_cells : image.state->n_cells()),
         "a session of other tokens than its state's");
  SessionHeader h;
  h.facts = options.facts;
  h.pinned = options.pinned;
  h.n_mtp_cells = std::min(n_mtp_cells(image), n_cells);
  h.tokens.assign(image.tokens.begin(), image.tokens.end());
  int64_t shared = 0, shared_mtp = 0;
  if (options.parent) {
    h.parent = options.parent->name;
    h.parent_checksum = options.parent->header.checksum;
    shared = shared_cells(image, options);
    shared_mtp = std::min({shared, options.parent->header.n_mtp_cells, h.n_mtp_cells});
  }
  for (const StateSection& s : image.state->sections()) {
    SessionSection section{.name = s.name,
                           .row_bytes = s.row_bytes,
                           .cells_per_row = static_cast<uint32_t>(s.cells_per_row),
                           .draft = s.draft};
    const auto end = static_cast<uint64_t>(s.n_rows(n_cells, h.n_mtp_cells));
    if (!s.is_fixed())
      section.first_row = static_cast<uint64_t>((s.draft ? shared_mtp : shared) / s.cells_per_row);
    section.n_rows = end - section.first_row;
    h.sections.push_back(std::move(section));
  }
  if (!image.logits.empty())
    h.sections.push_back(
        {.name = std::string(kLogitsSection), .row_bytes = image.logits.size_bytes(), .n_rows = 1});
  for (const auto& place : image.places)
    h.sections.push_back(
        {.name = place_section_name(*place), .row_bytes = place->fixed.size() * sizeof(float), .n_rows = 1});
  place_sections(h);
  return h;
}

namespace {

struct PieceJob {
  size_t section;
  uint64_t piece;
};

/// Writes a planned file from its sections' bytes.
Result<SessionHeader> write_planned(Storage& storage, const Path& path, SessionHeader plan,
                                    std::span<const std::span<const std::byte>> sources, int n_threads) {
  std::vector<PieceSums> sums;
  std::vector<PieceJob> jobs;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    sums.emplace_back(sources[i].size());
    for (uint64_t p = 0; p < sums[i].n_pieces(); ++p) jobs.push_back({i, p});
  }
  AtomicFile file = TRY(AtomicFile::create_direct(storage, path, plan.file_bytes));
  const int n_writers = file.file().direct() ? n_threads : 1;
  const auto write_piece = [&](size_t i, std::span<std::byte> block) -> Result<void> {
    const auto [section, piece] = jobs[i];
    const uint64_t first = piece * kPieceBytes;
    const auto bytes =
        sources[section].subspan(first, std::min(kPieceBytes, sources[section].size() - first));
    std::memcpy(block.data(), bytes.data(), bytes.size());
    sums[section].set(piece, fast_checksum(block.first(bytes.size())));
    const uint64_t padded = whole_pages(bytes.size());
    std::memset(block.data() + bytes.size(), 0, padded - bytes.size());
    return file.file().write_pages(plan.sections[section].offset + first, block.first(padded));
  };
  TRY(for_each_piece(jobs.size(), n_writers, write_piece));
  for (size_t i = 0; i < plan.sections.size(); ++i) plan.sections[i].checksum = sums[i].total();
  const std::vector<std::byte> header = encode(plan);
  const auto write_header = [&](size_t i, std::span<std::byte> block) -> Result<void> {
    const uint64_t first = i * kPieceBytes;
    const uint64_t n = std::min<uint64_t>(kPieceBytes, header.size() - first);
    std::memcpy(block.data(), header.data() + first, n);
    return file.file().write_pages(first, block.first(n));
  };
  TRY(for_each_piece((header.size() + kPieceBytes - 1) / kPieceBytes, 1, write_header));
  TRY(file.commit());
  return plan;
}

}  // namespace

Result<SessionHeader> write_session(Storage& storage, const Path& path, const SessionImage& image,
                                    const SessionWriteOptions& options) {
  SessionHeader plan = plan_session(image, options);
  const std::vector<std::span<const std::byte>> sources = sources_of(image, plan);
  return write_planned(storage, path, std::move(plan), sources, options.n_threads);
}

Result<void> SessionReader::copy(Storage& storage, const Path& path, SessionHeader to, int n_threads) const {
  place_sections(to);
  std::vector<std::vector<std::byte>> contents;
  std::vector<Target> targets;
  std::vector<std::span<const std::byte>> sources;
  for (size_t i = 0; i < to.sections.size(); ++i) {
    const SessionSection& s = header_.sections[i];
    std::vector<std::byte>& bytes = contents.emplace_back(s.end_row() * s.row_bytes);
    const uint64_t before = s.first_row * s.row_bytes;
    if (before > 0)
      targets.push_back({parent_file_.get(), parent_->find(s.name), before, std::span(bytes).first(before)});
    targets.push_back({file_.get(), &s, s.bytes(), std::span(bytes).subspan(before)});
  }
  TRY(read(targets, n_threads));
  for (size_t i = 0; i < to.sections.size(); ++i)
    sources.push_back(
        std::span<const std::byte>(contents[i]).subspan(to.sections[i].first_row * to.sections[i].row_bytes));
  TRY(write_planned(storage, path, std::move(to), sources, n_threads));
  return {};
}

Result<void> SessionReader::write_whole(Storage& storage, const Path& path, int n_threads) {
  SessionHeader whole = header_;
  whole.parent.clear();
  whole.parent_checksum = 0;
  for (SessionSection& s : whole.sections) {
    s.n_rows += s.first_row;
    s.first_row = 0;
  }
  return copy(storage, path, std::move(whole), n_threads);
}

Result<void> SessionReader::write_branch(Storage& storage, const Path& path, int n_threads) {
  const Path mine = file_->path();
  const auto directory = [](const Path& p) {
    return std::filesystem::absolute(p).parent_path().lexically_normal();
  };
  if (directory(mine) != directory(path))
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: a branch lies beside the file that it goes on from, {}", path.string(),
                             mine.string())};
  SessionHeader branch = header_;
  branch.pinned = false;
  if (branch.parent.empty()) {
    branch.parent = mine.filename().string();
    branch.parent_checksum = header_.checksum;
    // Fixed sections are whole in every file.
    uint64_t block = 4;
    for (const SessionSection& s : branch.sections)
      if (s.cells_per_row > 0) block = std::lcm(block, s.cells_per_row);
    const uint64_t shared = static_cast<uint64_t>(header_.n_cells()) / block * block;
    for (SessionSection& s : branch.sections) {
      if (s.cells_per_row == 0) continue;
      const uint64_t cells = s.draft ? std::min(shared, static_cast<uint64_t>(header_.n_mtp_cells)) : shared;
      s.first_row = cells / s.cells_per_row;
      s.n_rows -= s.first_row;
    }
  }
  return copy(storage, path, std::move(branch), n_threads);
}

}  // namespace forebay
