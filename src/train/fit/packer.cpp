#include "train/fit/packer.h"

#include <algorithm>
#include <numeric>

#include "core/ensure.h"
#include "train/fit/draw.h"

namespace forebay::train {

Packer::Packer(const Documents& documents, int64_t row_tokens, Packing packing, uint64_t seed,
               int32_t padding)
    : documents_(documents), T_(row_tokens), packing_(packing), seed_(seed), padding_(padding) {
  ENSURE(!documents.ids.empty() && row_tokens > 0, "a packer without documents or room");
}

std::vector<size_t> Packer::order_of(int64_t epoch) const {
  std::vector<uint64_t> keys(documents_.size());
  for (size_t d = 0; d < keys.size(); ++d) keys[d] = draw(seed_, static_cast<uint64_t>(epoch), d);
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  return order;
}

void Packer::lay_out(int64_t epoch) {
  if (epoch_.number == epoch) return;
  epoch_ = {epoch, {}, {0}};
  auto room = static_cast<uint64_t>(T_);
  const auto next_row = [&] {
    epoch_.row_starts.push_back(epoch_.pieces.size());
    room = static_cast<uint64_t>(T_);
  };
  for (const size_t document : order_of(epoch)) {
    const uint64_t length = documents_.length(document);
    if (packing_ == Packing::kWhole && length > room && room < static_cast<uint64_t>(T_)) next_row();
    for (uint64_t begin = 0; begin < length;) {
      if (room == 0) next_row();
      const uint64_t n = std::min(length - begin, room);
      epoch_.pieces.push_back({document, begin, n});
      begin += n;
      room -= n;
    }
  }
  if (epoch_.row_starts.back() < epoch_.pieces.size()) next_row();
}

int64_t Packer::seek(int64_t row) {
  while (row >= first_rows_.back()) {
    lay_out(static_cast<int64_t>(first_rows_.size()) - 1);
    first_rows_.push_back(first_rows_.back() + static_cast<int64_t>(epoch_.row_starts.size()) - 1);
  }
  const auto next = std::ranges::upper_bound(first_rows_, row);
  lay_out(next - first_rows_.begin() - 1);
  return row - *(next - 1);
}

int64_t Packer::rows_in_first_epoch() {
  seek(0);
  return first_rows_[1];
}

Rows Packer::rows(int64_t first, int64_t n) {
  Rows rows{torch::full({n, T_}, int64_t{padding_}, torch::kInt64),
            torch::full({n, T_}, int64_t{padding_}, torch::kInt64), torch::zeros({n, T_})};
  auto* ids = rows.ids_BT.data_ptr<int64_t>();
  auto* targets = rows.targets_BT.data_ptr<int64_t>();
  auto* weights = rows.weights_BT.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = seek(first + i);
    int64_t at = i * T_;
    const size_t row_end = epoch_.row_starts[static_cast<size_t>(row) + 1];
    for (size_t p = epoch_.row_starts[static_cast<size_t>(row)]; p < row_end; ++p) {
      const Piece& piece = epoch_.pieces[p];
      const uint64_t start = documents_.ends[piece.document] + piece.begin;
      const uint64_t end_of_document = documents_.ends[piece.document + 1];
      for (uint64_t t = start; t < start + piece.n; ++t, ++at) {
        ids[at] = documents_.ids[t];
        // Behind a document comes the next one of the stream; that it begins so is not to be learnt from
        // chats.
        uint64_t next = t + 1;
        if (next == end_of_document) {
          if (packing_ == Packing::kWhole || p + 1 == epoch_.pieces.size()) continue;
          next = documents_.ends[epoch_.pieces[p + 1].document];
        }
        targets[at] = documents_.ids[next];
        weights[at] = documents_.learnt[next];
      }
    }
  }
  return rows;
}

}  // namespace forebay::train
