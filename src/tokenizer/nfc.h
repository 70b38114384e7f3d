/// Unicode normalisation form C.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

namespace forebay {

/// Immutable after creation. Thread-safe.
class NfcNormalizer {
 public:
  /// Takes milliseconds. Errors: kUnsupported when this build has no utf8proc.
  static Result<NfcNormalizer> create();

  /// The normal form of `text`, which is valid UTF-8: `text` itself where nothing in it can change, else a
  /// view of `buffer`. Linear but for sorting runs of combining marks (n log n).
  std::string_view normalize(std::string_view text, std::string& buffer) const;

 private:
  NfcNormalizer() = default;
  bool is_active(uint32_t code_point) const { return active_[code_point / 64] >> code_point % 64 & 1; }

  // One bit per code point: set when it can change, or move, or join the character before it. Any other
  // begins a stretch of text that is normalised on its own.
  std::vector<uint64_t> active_;
};

}  // namespace forebay
