/// Documents laid into rows of equal length, in an order that is a function of the seed alone.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "train/fit/documents.h"

namespace forebay::train {

enum class Packing {
  kStream,  // one document behind the other, cut where a row ends
  kWhole,   // a document that does not fit in the rest of a row begins the next one; only longer ones are cut
};

/// Rows [B, T] int64: what the model reads, and the token that follows each; `weights` f32 says whether
/// predicting it counts.
struct Rows {
  torch::Tensor ids_BT, targets_BT, weights_BT;
};

/// Row r of the endless sequence of epochs is a function of the documents, the seed and r. In an epoch every
/// token is read exactly once, in a new order of documents each time; the rest of a row without tokens has
/// weight 0. Confined; the documents must outlive it.
class Packer {
 public:
  /// `padding`: the id in the rest of rows.
  Packer(const Documents& documents, int64_t row_tokens, Packing packing, uint64_t seed, int32_t padding);

  int64_t rows_in_first_epoch();
  /// Rows [first, first + n).
  Rows rows(int64_t first, int64_t n);

 private:
  struct Piece {
    size_t document;
    uint64_t begin, n;  // tokens of it
  };
  /// One epoch: pieces in order, and where rows begin among them.
  struct Epoch {
    int64_t number = -1;
    std::vector<Piece> pieces;
    std::vector<size_t> row_starts;  // row r is pieces [row_starts[r], row_starts[r + 1])
  };

  std::vector<size_t> order_of(int64_t epoch) const;
  void lay_out(int64_t epoch);
  /// Lays out the epoch of this row; the row's number in it.
  int64_t seek(int64_t row);

  const Documents& documents_;
  const int64_t T_;
  const Packing packing_;
  const uint64_t seed_;
  const int32_t padding_;
  Epoch epoch_;                         // the last one that was laid out
  std::vector<int64_t> first_rows_{0};  // of every epoch so far, and of the one behind them
};

}  // namespace forebay::train
