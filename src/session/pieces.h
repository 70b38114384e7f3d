/// Sections of a file in pieces that several threads read or write at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forebay/result.h"

#include "core/function_ref.h"

namespace forebay {

inline constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

/// The checksum of a section is that of its pieces' checksums, little-endian: pieces can be checked in any
/// order.
class PieceSums {
 public:
  explicit PieceSums(uint64_t section_bytes) : sums_((section_bytes + kPieceBytes - 1) / kPieceBytes) {}
  void set(uint64_t piece, uint64_t sum) { sums_[piece] = sum; }  // from any thread, each piece once
  size_t n_pieces() const { return sums_.size(); }
  uint64_t total() const;

 private:
  std::vector<uint64_t> sums_;
};

/// Calls body(i, block) for i in [0, n) on n_threads threads of its own, in order of i; `block` is the
/// thread's, page-aligned, kPieceBytes and two pages long. The first error ends it and is returned.
Result<void> for_each_piece(size_t n, int n_threads,
                            FunctionRef<Result<void>(size_t i, std::span<std::byte> block)> body);

}  // namespace forebay
