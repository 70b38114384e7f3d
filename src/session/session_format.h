/// The header of a session file: which tokens it is the state of, what it must fit, and where each section
/// is. docs/formats/session.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"

namespace forebay {

/// Rows [first_row, first_row + n_rows) of one piece of state; the rows before them are the parent's.
struct SessionSection {
  std::string name;
  uint64_t offset = 0;  // in the file, a page border
  uint64_t row_bytes = 0;
  uint32_t cells_per_row = 0;  // 0: one row, whatever the cells
  bool draft = false;          // of the draft head's cells
  uint64_t first_row = 0;
  uint64_t n_rows = 0;
  uint64_t checksum = 0;  // of the checksums of its pieces (PieceSums)

  uint64_t bytes() const { return row_bytes * n_rows; }
  uint64_t end_row() const { return first_row + n_rows; }
};

struct SessionHeader {
  std::vector<std::string> facts;  // "kv=int8": what the model that continues must have in common
  bool pinned = false;             // a prefix that conversations share
  std::string parent;              // name of a file beside this one that has the rows before; empty: none
  uint64_t parent_checksum = 0;    // SessionHeader::checksum of it
  int64_t n_mtp_cells = 0;
  std::vector<int32_t> tokens;  // one per cell
  std::vector<SessionSection> sections;

  uint64_t file_bytes = 0;  // in all
  uint64_t checksum = 0;    // of the header, and with the sections' in it, of everything

  int64_t n_cells() const { return static_cast<int64_t>(tokens.size()); }
  const SessionSection* find(std::string_view name) const;
};

/// Bytes of the pages that hold so many.
uint64_t whole_pages(uint64_t bytes);

/// Sets the sections' offsets and file_bytes. Returns the header's bytes, a multiple of the page size.
uint64_t place_sections(SessionHeader& header);
/// Sets the checksum. The header must have been placed.
std::vector<std::byte> encode(SessionHeader& header);

/// `bytes` begin the file and hold at least its header. Errors: kCorrupt and kUnsupported.
Result<SessionHeader> parse_session_header(std::span<const std::byte> bytes, uint64_t file_bytes);
/// Reads the header and nothing else. Errors name the file.
Result<SessionHeader> read_session_header(ReadableFile& file);
Result<SessionHeader> read_session_header(Storage& storage, const Path& path);

}  // namespace forebay
