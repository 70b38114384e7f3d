#include "session/session_format.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/hash.h"
#include "core/page_range.h"

namespace forebay {
namespace {

constexpr char kMagic[] = "FBYSESS";  // and its 0
constexpr uint32_t kVersion = 1;
constexpr uint32_t kPinned = 1;
constexpr uint64_t kFixedBytes = 80;
constexpr size_t kChecksumAt = 32;
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 28;
constexpr uint64_t kMaxText = 4096;

Error corrupt(std::string what) {
  return {Code::kCorrupt, std::move(what)};
}

void put_text(std::vector<std::byte>& out, const std::string& text) {
  put_le(out, static_cast<uint16_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Reads on from a place; says no at the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, size_t at) : bytes_(bytes), at_(at) {}

  template <typename T>
  Result<T> number() {
    if (bytes_.size() - at_ < sizeof(T)) return corrupt("session header: cut short");
    const T value = get_le<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }
  Result<std::string> text() {
    const auto n = TRY(number<uint16_t>());
    if (n > kMaxText || bytes_.size() - at_ < n) return corrupt("session header: a text beyond its end");
    std::string out(reinterpret_cast<const char*>(bytes_.data() + at_), n);
    at_ += n;
    return out;
  }
  size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_;
};

uint64_t header_bytes(const SessionHeader& h) {
  uint64_t n = kFixedBytes + 2 + h.parent.size() + h.tokens.size() * sizeof(int32_t);
  for (const std::string& fact : h.facts) n += 2 + fact.size();
  for (const SessionSection& s : h.sections) n += 2 + s.name.size() + 2 * 4 + 5 * 8;
  return whole_pages(n);
}

/// With zeros where the checksum is.
uint64_t checksum_of(std::span<const std::byte> header) {
  std::vector<std::byte> copy(header.begin(), header.end());
  std::fill_n(copy.begin() + kChecksumAt, 8, std::byte{0});
  return fast_checksum(copy);
}

Result<void> check_sections(const SessionHeader& h, uint64_t first_offset) {
  uint64_t offset = first_offset;
  std::set<std::string_view> names;
  for (const SessionSection& s : h.sections) {
    if (!names.insert(s.name).second) return corrupt(fmt::format("session section '{}' twice", s.name));
    constexpr uint64_t kMost = uint64_t{1} << 48;
    if (s.row_bytes == 0 || s.row_bytes > kMost || s.n_rows > kMost / s.row_bytes || s.first_row > kMost)
      return corrupt(fmt::format("session section '{}': {} rows of {} bytes", s.name, s.n_rows, s.row_bytes));
    const auto n_cells = static_cast<uint64_t>(s.draft ? h.n_mtp_cells : h.n_cells());
    const uint64_t end_row = s.cells_per_row == 0 ? 1 : n_cells / s.cells_per_row;
    if (s.end_row() != end_row)
      return corrupt(fmt::format("session section '{}': {} rows, {} cells have {}", s.name, s.end_row(),
                                 n_cells, end_row));
    if (s.offset != offset)
      return corrupt(fmt::format("session section '{}' at {}, expected at {}", s.name, s.offset, offset));
    if (s.first_row > 0 && h.parent.empty())
      return corrupt(
          fmt::format("session section '{}' begins at row {} and there is no parent", s.name, s.first_row));
    offset += whole_pages(s.bytes());
  }
  if (offset != h.file_bytes)
    return corrupt(fmt::format("session file: its sections end at {}, the file at {}", offset, h.file_bytes));
  return {};
}

}  // namespace

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

const SessionSection* SessionHeader::find(std::string_view name) const {
  for (const SessionSection& s : sections)
    if (s.name == name) return &s;
  return nullptr;
}

uint64_t place_sections(SessionHeader& header) {
  const uint64_t first = header_bytes(header);
  header.file_bytes = first;
  for (SessionSection& s : header.sections) {
    s.offset = header.file_bytes;
    header.file_bytes += whole_pages(s.bytes());
  }
  return first;
}

std::vector<std::byte> encode(SessionHeader& h) {
  std::vector<std::byte> out(sizeof kMagic);
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  put_le(out, kVersion);
  put_le(out, h.pinned ? kPinned : uint32_t{0});
  const uint64_t size = header_bytes(h);
  put_le(out, size);
  put_le(out, h.file_bytes);
  put_le(out, uint64_t{0});  // the checksum
  put_le(out, static_cast<uint64_t>(h.tokens.size()));
  put_le(out, static_cast<uint64_t>(h.n_mtp_cells));
  put_le(out, h.parent_checksum);
  put_le(out, static_cast<uint32_t>(h.facts.size()));
  put_le(out, static_cast<uint32_t>(h.sections.size()));
  put_le(out, uint64_t{0});  // reserved
  put_text(out, h.parent);
  for (const std::string& fact : h.facts) put_text(out, fact);
  for (const SessionSection& s : h.sections) {
    put_text(out, s.name);
    put_le(out, s.cells_per_row);
    put_le(out, static_cast<uint32_t>(s.draft));
    for (uint64_t v : {s.offset, s.row_bytes, s.first_row, s.n_rows, s.checksum}) put_le(out, v);
  }
  for (int32_t token : h.tokens) put_le(out, static_cast<uint32_t>(token));
  out.resize(size);
  h.checksum = checksum_of(out);
  for (size_t i = 0; i < 8; ++i) out[kChecksumAt + i] = static_cast<std::byte>(h.checksum >> (8 * i));
  return out;
}

Result<SessionHeader> parse_session_header(std::span<const std::byte> bytes, uint64_t file_bytes) {
  if (bytes.size() < kFixedBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return corrupt("not a session: it does not begin with FBYSESS");
  if (const auto version = get_le<uint32_t>(bytes, 8); version != kVersion)
    return Error{Code::kUnsupported, fmt::format("session version {}, expected {}", version, kVersion)};
  const auto size = get_le<uint64_t>(bytes, 16);
  if (size < kPageBytes || size > kMaxHeaderBytes || size % kPageBytes != 0 || size > bytes.size())
    return corrupt(fmt::format("session header: {} bytes, the file has {}", size, file_bytes));
  bytes = bytes.first(size);
  SessionHeader h;
  h.checksum = get_le<uint64_t>(bytes, kChecksumAt);
  if (const uint64_t sum = checksum_of(bytes); sum != h.checksum)
    return corrupt(fmt::format("session header: checksum {:016x}, its bytes give {:016x}", h.checksum, sum));
  h.file_bytes = get_le<uint64_t>(bytes, 24);
  if (h.file_bytes != file_bytes)
    return corrupt(fmt::format("session file: {} bytes, its header says {}", file_bytes, h.file_bytes));

  h.pinned = (get_le<uint32_t>(bytes, 12) & kPinned) != 0;
  const auto n_tokens = get_le<uint64_t>(bytes, 40);
  h.n_mtp_cells = static_cast<int64_t>(get_le<uint64_t>(bytes, 48));
  h.parent_checksum = get_le<uint64_t>(bytes, 56);
  const auto n_facts = get_le<uint32_t>(bytes, 64);
  const auto n_sections = get_le<uint32_t>(bytes, 68);
  Cursor cursor(bytes, kFixedBytes);
  h.parent = TRY(cursor.text());
  if (h.parent.find('/') != std::string::npos || h.parent == "..")
    return corrupt("session header: the parent is not a file beside this one");
  for (uint32_t i = 0; i < n_facts; ++i) h.facts.push_back(TRY(cursor.text()));
  for (uint32_t i = 0; i < n_sections; ++i) {
    SessionSection s;
    s.name = TRY(cursor.text());
    s.cells_per_row = TRY(cursor.number<uint32_t>());
    s.draft = TRY(cursor.number<uint32_t>()) != 0;
    for (uint64_t* v : {&s.offset, &s.row_bytes, &s.first_row, &s.n_rows, &s.checksum})
      *v = TRY(cursor.number<uint64_t>());
    h.sections.push_back(std::move(s));
  }
  if (n_tokens > cursor.left() / sizeof(int32_t)) return corrupt("session header: tokens beyond its end");
  h.tokens.reserve(n_tokens);
  for (uint64_t i = 0; i < n_tokens; ++i) {
    h.tokens.push_back(static_cast<int32_t>(TRY(cursor.number<uint32_t>())));
    if (h.tokens.back() < 0) return corrupt("session header: a negative token");
  }
  if (h.n_mtp_cells < 0 || h.n_mtp_cells > h.n_cells())
    return corrupt(fmt::format("session: {} draft cells of {}", h.n_mtp_cells, h.n_cells()));
  TRY(check_sections(h, size));
  return h;
}

Result<SessionHeader> read_session_header(ReadableFile& file) {
  const auto named = [&](Error error) { return std::move(error).in(file.path().string()); };
  if (file.size() < kPageBytes) return named(corrupt(fmt::format("{} bytes, not a session", file.size())));
  // Most headers are one read.
  std::vector<std::byte> bytes(std::min<uint64_t>(file.size(), 16 * kPageBytes));
  TRY(file.read_at(0, bytes));
  const uint64_t size = get_le<uint64_t>(bytes, 16);
  if (size > bytes.size() && size <= std::min(file.size(), kMaxHeaderBytes) &&
      std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0) {
    bytes.resize(size);
    TRY(file.read_at(0, bytes));
  }
  Result<SessionHeader> header = parse_session_header(bytes, file.size());
  if (!header) return named(std::move(header).error());
  return header;
}

Result<SessionHeader> read_session_header(Storage& storage, const Path& path) {
  const std::unique_ptr<ReadableFile> file = TRY(storage.open(path));
  return read_session_header(*file);
}

}  // namespace forebay
