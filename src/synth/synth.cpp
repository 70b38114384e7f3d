#include "synth/synth.h"

#include <algorithm>
#include <bit>
#include <map>
#include <new>
#include <tuple>

#include "core/interrupt.h"
#include "quant/quant.h"

namespace forebay {
namespace {

using namespace synth;

constexpr uint64_t kPieceBytes = 8 << 20;

/// Makes the bytes of one tensor after another.
class Dealer {
 public:
  Dealer(const SynthPlan& plan, ThreadPool& pool) : plan_(plan), key_{plan.seed}, pool_(pool) {}

  /// Hands the tensor's bytes over in pieces, in order.
  Result<void> deal(size_t i, FunctionRef<Result<void>(std::span<const std::byte>)> take) {
    const SynthTensor& tensor = plan_.tensors[i];
    const DType type = plan_.types[i];
    const Key key = key_.named(tensor.name);
    if (const auto* distribution = std::get_if<Normal>(&tensor.weights)) {
      const Deck* deck = TRY(find_deck(type, tensor, *distribution));
      return in_pieces(i, take, [&](uint64_t row, std::byte* out) { deck->deal(key, row, out); });
    }
    // These are small, and F32.
    const RowFunction& weights = std::get<RowFunction>(tensor.weights);
    return in_pieces(i, take, [&](uint64_t row, std::byte* out) {
      weights(key, row, {reinterpret_cast<float*>(out), tensor.n_columns()});
    });
  }

 private:
  Result<void> in_pieces(size_t i, FunctionRef<Result<void>(std::span<const std::byte>)> take,
                         FunctionRef<void(uint64_t row, std::byte* out)> make_row) {
    const uint64_t n_rows = plan_.tensors[i].n_rows();
    const uint64_t bytes_per_row = plan_.tensor_size(i) / n_rows;
    const uint64_t rows_per_piece = std::max<uint64_t>(1, kPieceBytes / bytes_per_row);
    piece_.resize(std::max<size_t>(piece_.size(), rows_per_piece * bytes_per_row));
    for (uint64_t first = 0; first < n_rows; first += rows_per_piece) {
      const uint64_t n = std::min(rows_per_piece, n_rows - first);
      const auto grain = static_cast<int64_t>(std::max<uint64_t>(1, (64 << 10) / bytes_per_row));
      pool_.parallel_for(static_cast<int64_t>(n), grain, [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r)
          make_row(first + static_cast<uint64_t>(r),
                   piece_.data() + static_cast<uint64_t>(r) * bytes_per_row);
      });
      TRY(take(std::span(piece_).first(n * bytes_per_row)));
    }
    return {};
  }

  /// Most tensors of a model share a handful of decks.
  Result<const Deck*> find_deck(DType type, const SynthTensor& tensor, const Normal& distribution) {
    const uint64_t n_columns = tensor.n_columns();
    const uint64_t n_weights = std::min(Deck::kMaxWeights, std::bit_ceil(n_columns * tensor.n_rows()));
    const auto [at, is_new] = decks_.try_emplace({type, n_columns, n_weights, distribution});
    const Key key = key_.named("deck").numbered(decks_.size());
    if (is_new) at->second = TRY(Deck::make(type, n_columns, n_weights, distribution, key));
    return static_cast<const Deck*>(&at->second);
  }

  const SynthPlan& plan_;
  const Key key_;
  ThreadPool& pool_;
  std::map<std::tuple<DType, uint64_t, uint64_t, Normal>, Deck> decks_;
  std::vector<std::byte> piece_;
};

}  // namespace

Result<void> write_synthetic(Storage& storage, const Path& path, const SynthPlan& plan, ThreadPool& pool,
                             FunctionRef<void(const SynthProgress&)> progress, std::stop_token stop) {
  try {
    TRY(check_stop(stop));
    GgufWriter writer = TRY(GgufWriter::create(storage, path));
    for (const auto& [key, value] : plan.metadata.entries()) writer.set(key, value);
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      TRY(writer.declare(plan.tensors[i].name, plan.types[i], plan.tensors[i].ne));
    TRY(writer.write_headers());

    Dealer dealer(plan, pool);
    SynthProgress state{0, plan.tensor_bytes, {}};
    for (size_t i = 0; i < plan.tensors.size(); ++i) {
      state.tensor = plan.tensors[i].name;
      TRY(dealer.deal(i, [&](std::span<const std::byte> bytes) -> Result<void> {
        TRY(writer.write_data(bytes));
        state.bytes_done += bytes.size();
        progress(state);
        return check_stop(stop);
      }));
    }
    return writer.finish();
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, path.string() + ": no memory left to make it"};
  }
}

}  // namespace forebay
