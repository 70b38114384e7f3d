// Headers of session files.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/hash.h"
#include "fuzz.h"
#include "session/session_format.h"

namespace forebay {
namespace {

std::string valid_header() {
  SessionHeader h;
  h.facts = {"model=1", "kv=int8"};
  h.parent = "a.session";
  h.tokens.assign(70, 7);
  h.n_mtp_cells = 12;
  h.sections = {{.name = "delta", .row_bytes = 5000, .n_rows = 1},
                {.name = "keys", .row_bytes = 64, .cells_per_row = 1, .first_row = 8, .n_rows = 62},
                {.name = "pooled", .row_bytes = 512, .cells_per_row = 4, .first_row = 2, .n_rows = 15},
                {.name = "draft", .row_bytes = 64, .cells_per_row = 1, .draft = true, .n_rows = 12}};
  place_sections(h);
  const std::vector<std::byte> bytes = encode(h);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace
}  // namespace forebay

FuzzSeeds fuzz_seeds() {
  return {.inputs = {forebay::valid_header(), "FBYSESS", ""}, .tokens = {"FBYSESS"}};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay;
  std::vector<std::byte> bytes(size);
  std::transform(data, data + size, bytes.begin(), [](uint8_t b) { return static_cast<std::byte>(b); });
  for (bool mend : {false, true}) {
    uint64_t file_bytes = 1 << 20;
    // Past the checksum and the file's size, which mutations would never get right.
    if (mend) {
      if (size < 4096) break;
      bytes.resize(size / 4096 * 4096);
      const auto put = [&](size_t at, uint64_t value) {
        for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
      };
      put(16, bytes.size());
      put(32, 0);
      put(32, fast_checksum(bytes));
      file_bytes = get_le<uint64_t>(bytes, 24);
    }
    const Result<SessionHeader> header = parse_session_header(bytes, file_bytes);
    if (!header) {
      FUZZ_ASSERT(!header.error().message.empty());
      continue;
    }
    uint64_t end = 0;
    for (const SessionSection& s : header->sections) {
      FUZZ_ASSERT(s.offset >= end && s.offset % 4096 == 0);
      end = s.offset + s.bytes();
      FUZZ_ASSERT(end <= file_bytes);
    }
    FUZZ_ASSERT(header->n_mtp_cells >= 0 && header->n_mtp_cells <= header->n_cells());
  }
  return 0;
}
