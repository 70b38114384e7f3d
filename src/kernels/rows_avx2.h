// Eight weight rows at a time, and what comes after them. For files built with AVX2 or more; include nowhere
// else.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/vectors.h"
#include "tensor/view.h"

namespace forebay {
namespace {

constexpr int kRowsAtOnce = 8;

/// Eight rows from n on; the last one again where they end.
struct RowPointers {
  const uint8_t* row[kRowsAtOnce];

  RowPointers(const MatrixView& w, int64_t n, int64_t n_end) {
    for (int r = 0; r < kRowsAtOnce; ++r)
      row[r] = reinterpret_cast<const uint8_t*>(w.row(std::min(n + r, n_end - 1)));
  }
};

/// Eight rows are eight streams to the processor's prefetcher, and short ones: what comes next is fetched
/// here, front to back and a little at a time, while these are multiplied. Past the end of a matrix this asks
/// for nothing that hurts.
class Prefetcher {
 public:
  /// The next eight rows, or what is 8 KiB ahead, to the first-level cache; and to the second what is 16 KiB
  /// behind that, because it can wait for more lines at once than the first.
  Prefetcher(const MatrixView& w, int64_t n)
      : at_(reinterpret_cast<const char*>(w.row(n)) +
            std::max<int64_t>(8192, kRowsAtOnce * w.row_stride_bytes)),
        done_(at_) {}
  void advance(int64_t n_bytes) {
    at_ += n_bytes;
    for (; done_ < at_; done_ += 64) {
      _mm_prefetch(done_, _MM_HINT_T0);
      _mm_prefetch(done_ + 16384, _MM_HINT_T1);
    }
  }

 private:
  const char* at_;
  const char* done_;
};

}  // namespace
}  // namespace forebay
