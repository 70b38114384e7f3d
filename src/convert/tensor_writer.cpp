#include "convert/tensor_writer.h"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "core/ensure.h"
#include "core/interrupt.h"
#include "quant/quant.h"

namespace forebay::convert {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;  // encoded, unless one row is larger

/// The failure of the lowest row: which one is reported must not depend on the threads.
class FirstFailure {
 public:
  void put(uint64_t row, Error error) {
    const std::lock_guard lock(mutex_);
    if (error_ && row_ <= row) return;
    row_ = row;
    error_ = std::move(error);
  }
  std::optional<std::pair<uint64_t, Error>> take() && {
    if (!error_) return std::nullopt;
    return std::pair(row_, std::move(*error_));
  }

 private:
  std::mutex mutex_;
  uint64_t row_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<void> write_tensor(GgufWriter& writer, const OutputTensor& tensor, DType type, ThreadPool& pool,
                          FunctionRef<void(uint64_t bytes)> wrote, const std::stop_token& stop) {
  const RowSource& source = tensor.source;
  const uint64_t n_columns = source.n_columns(), n_rows = source.n_rows();
  const auto bytes_per_row = static_cast<uint64_t>(row_bytes(type, static_cast<int64_t>(n_columns)));
  const uint64_t rows_per_piece = std::max<uint64_t>(1, kPieceBytes / bytes_per_row);
  std::vector<std::byte> piece(std::min(rows_per_piece, n_rows) * bytes_per_row);
  std::vector<std::vector<float>> row_of_thread(pool.n_threads(), std::vector<float>(n_columns));

  for (uint64_t first = 0; first < n_rows; first += rows_per_piece) {
    TRY(check_stop(stop));
    const uint64_t n = std::min(rows_per_piece, n_rows - first);
    FirstFailure failure;
    const int64_t grain = std::max<int64_t>(1, 16384 / static_cast<int64_t>(n_columns));
    pool.parallel_for(static_cast<int64_t>(n), grain, [&](int64_t begin, int64_t end, int thread) {
      std::vector<float>& row = row_of_thread[thread];
      for (int64_t r = begin; r < end; ++r) {
        Result<void> done = source.read_row(first + r, row);
        if (done) done = encode_row(type, row, piece.data() + r * bytes_per_row);
        if (!done) return failure.put(first + r, std::move(done).error());
      }
    });
    if (auto failed = std::move(failure).take())
      return std::move(failed->second).in(fmt::format("tensor {}, row {}", tensor.name, failed->first));
    const std::span<const std::byte> bytes = std::span(piece).first(n * bytes_per_row);
    TRY(writer.write_data(bytes));
    wrote(bytes.size());
  }
  return {};
}

}  // namespace forebay::convert
