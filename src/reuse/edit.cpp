#include "reuse/edit.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/ensure.h"
#include "model/relocate.h"
#include "model/transport.h"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t length(std::span<const int32_t> tokens) {
  return static_cast<int64_t>(tokens.size());
}

Error refuse(std::string message) {
  return {Code::kInvalidArgument, "edit: " + std::move(message)};
}

/// One edit under way.
class Editor {
 public:
  Editor(Model& model, SequenceState& state, const Edit& edit, const EditOptions& options,
         const EditSource& source)
      : model_(model),
        config_(model.config()),
        state_(state),
        edit_(edit),
        options_(options),
        source_(source),
        n_old_(length(edit.prefix) + length(edit.removed)),
        n_new_(length(edit.prefix) + length(edit.inserted)),
        n_suffix_(length(edit.suffix)),
        junction_(junction_length(config_, edit, options.junction)) {}

  Result<void> check() const;
  Result<EditReport> run(RecurrenceObserver* observer, const EditProgress& progress, std::stop_token stop);

 private:
  bool transports() const { return options_.transport && options_.recurrent == Recurrent::kKeep; }
  bool has_log() const {
    return source_.log != nullptr && source_.log->covers(n_old_ + junction_, n_old_ + n_suffix_);
  }
  /// The old state where C's moved part begins: what the new one is compared with.
  bool wants_old_junction() const {
    return transports() || (options_.recurrent == Recurrent::kKeep && options_.max_staleness < 1e30 &&
                            source_.after_removed != nullptr && has_log());
  }
  Result<RecurrentCopy> read_old_junction();
  Result<void> prefill(std::span<const int32_t> tokens);
  bool put_sums(RecurrentCopy& kept, const std::optional<RecurrentCopy>& old_junction, EditReport& report);
  void transport(RecurrentCopy& kept, const RecurrentCopy& before, const RecurrentCopy& instead,
                 EditReport& report);

  Model& model_;
  const ModelConfig& config_;
  SequenceState& state_;
  const Edit& edit_;
  const EditOptions& options_;
  const EditSource& source_;
  const int64_t n_old_, n_new_;  // cells before C, then and now
  const int64_t n_suffix_;
  const int64_t junction_;

  RecurrenceObserver* observer_ = nullptr;
  EditProgress progress_;
  std::stop_token stop_;
  int64_t n_done_ = 0, n_to_do_ = 0;
};

Result<void> Editor::check() const {
  if (state_.n_cells() != n_old_ + n_suffix_)
    return refuse(
        fmt::format("spans of {} tokens, the sequence has {}", n_old_ + n_suffix_, state_.n_cells()));
  if (n_new_ + n_suffix_ > state_.context())
    return refuse(
        fmt::format("{} tokens afterwards, the context holds {}", n_new_ + n_suffix_, state_.context()));
  if (edit_.delta() % shift_granule(config_) != 0)
    return refuse(
        fmt::format("a shift of {} cells, expected a multiple of {}", edit_.delta(), shift_granule(config_)));
  if (source_.start == nullptr || source_.start->n_cells > length(edit_.prefix))
    return refuse("no snapshot at or before it");
  if (source_.after_removed != nullptr &&
      (source_.after_removed->n_cells < n_old_ || source_.after_removed->n_cells > n_old_ + junction_))
    return refuse(fmt::format("a snapshot at {} after what it removes, expected {} to {}",
                              source_.after_removed->n_cells, n_old_, n_old_ + junction_));
  if (options_.recurrent == Recurrent::kExact && source_.exact == nullptr)
    return refuse("no state to take over");
  if (transports() && (source_.log == nullptr || !source_.log->has_keys() ||
                       !source_.log->covers(n_old_, n_old_ + n_suffix_)))
    return refuse("transport needs the keys of every token after it");
  return {};
}

Result<void> Editor::prefill(std::span<const int32_t> tokens) {
  while (!tokens.empty()) {
    if (stop_.stop_requested())
      return Error{Code::kCancelled, fmt::format("edit: cancelled at {} of {} tokens", n_done_, n_to_do_)};
    const auto n = std::min<size_t>(tokens.size(), model_.max_window());
    Span span{&state_, tokens.first(n), LogitRows::kNone};
    span.prompt = true;
    span.recurrence = observer_;
    TRY(model_.forward({&span, 1}));
    tokens = tokens.subspan(n);
    n_done_ += static_cast<int64_t>(n);
    if (progress_) progress_(n_done_, n_to_do_);
  }
  return {};
}

/// The recurrent state after A B C[:J], for the difference that travels. Rows that are read again come out as
/// they were.
Result<RecurrentCopy> Editor::read_old_junction() {
  const Snapshot& from = source_.after_removed != nullptr ? *source_.after_removed : *source_.start;
  TRY(state_.restore(from));
  if (source_.after_removed == nullptr) {
    TRY(prefill(edit_.prefix.subspan(state_.n_cells())));
    TRY(prefill(edit_.removed));
  }
  TRY(prefill(edit_.suffix.first(junction_).subspan(std::max<int64_t>(state_.n_cells() - n_old_, 0))));
  RecurrentCopy copy = RecurrentCopy::of(state_, config_);
  state_.advance(edit_.suffix.subspan(junction_));
  return copy;
}

Result<EditReport> Editor::run(RecurrenceObserver* observer, const EditProgress& progress,
                               std::stop_token stop) {
  const auto began = Clock::now();
  progress_ = progress;
  stop_ = std::move(stop);
  const int64_t start = source_.start->n_cells;
  n_to_do_ = n_new_ + junction_ - start;
  if (wants_old_junction())
    n_to_do_ +=
        n_old_ + junction_ - (source_.after_removed != nullptr ? source_.after_removed->n_cells : start);

  RecurrentCopy kept = RecurrentCopy::of(state_, config_);
  std::optional<RecurrentCopy> old_junction;
  if (wants_old_junction()) old_junction = TRY(read_old_junction());

  const CellMove move{n_old_ + junction_, n_suffix_ - junction_, edit_.delta()};
  TRY(relocate_rows(state_, config_, move));
  TRY(state_.restore(*source_.start));
  observer_ = observer;
  TRY(prefill(edit_.prefix.subspan(start)));
  TRY(prefill(edit_.inserted));
  TRY(prefill(edit_.suffix.first(junction_)));

  EditReport report;
  report.n_moved = move.n;
  report.n_prefilled = n_done_;
  if (!put_sums(kept, old_junction, report)) {
    report.refused = true;
    report.n_moved = 0;
    report.seconds = seconds_since(began);
    return report;
  }
  kept.write_raw_keys(state_, config_, move);
  state_.advance(edit_.suffix.subspan(junction_));
  report.seconds = seconds_since(began);
  return report;
}

/// False when what would be kept is too stale.
bool Editor::put_sums(RecurrentCopy& kept, const std::optional<RecurrentCopy>& old_junction,
                      EditReport& report) {
  const RecurrentCopy instead = RecurrentCopy::of(state_, config_);
  if (has_log())
    report.staleness = measure_staleness(config_, *source_.log, n_old_ + junction_, n_old_ + n_suffix_, kept,
                                         old_junction ? &*old_junction : nullptr, instead);
  if (options_.recurrent == Recurrent::kLossy) return true;
  if (options_.recurrent == Recurrent::kExact) {
    source_.exact->write_sums(state_);
    return true;
  }
  if (report.staleness && report.staleness->relative_bound() > options_.max_staleness) return false;
  if (transports()) transport(kept, *old_junction, instead, report);
  kept.write_sums(state_);
  return true;
}

void Editor::transport(RecurrentCopy& kept, const RecurrentCopy& before, const RecurrentCopy& instead,
                       EditReport& report) {
  const auto began = Clock::now();
  const int64_t first = n_old_ + junction_, end = n_old_ + n_suffix_;
  for (int i = 0; i < config_.n_blocks; ++i) {
    std::vector<float>& matrix = kept.matrices[i];
    if (matrix.empty()) continue;
    std::vector<int> heads;
    for (const HeadStaleness& head : report.staleness->heads)
      if (head.block == i && head.sum_log_decay > kLongMemory) heads.push_back(head.head);
    std::vector<float> difference(matrix.size());
    for (size_t j = 0; j < matrix.size(); ++j) difference[j] = instead.matrices[i][j] - before.matrices[i][j];
    transport_difference(model_.kernels(), config_.gated_delta.shape, *source_.log, i, first, end, heads,
                         difference);
    for (size_t j = 0; j < matrix.size(); ++j) matrix[j] += difference[j];
    report.n_transported += static_cast<int64_t>(heads.size());
  }
  report.transport_seconds = seconds_since(began);
}

}  // namespace

int64_t n_pads(const ModelConfig& config, int64_t n_removed, int64_t n_inserted) {
  const int64_t granule = shift_granule(config);
  return ((n_removed - n_inserted) % granule + granule) % granule;
}

int64_t junction_length(const ModelConfig& config, const Edit& edit, int64_t wanted) {
  const int64_t granule = shift_granule(config);
  const int64_t first = length(edit.prefix) + length(edit.inserted);
  const int64_t end = (first + std::max<int64_t>(wanted, 0) + granule - 1) / granule * granule;
  return std::min(end - first, length(edit.suffix));
}

Result<EditReport> apply_edit(Model& model, SequenceState& state, const Edit& edit,
                              const EditOptions& options, const EditSource& source,
                              RecurrenceObserver* observer, const EditProgress& progress,
                              std::stop_token stop) {
  Editor editor(model, state, edit, options, source);
  TRY(editor.check());
  ENSURE(observer == nullptr || observer != source.log, "an edit needs the log as it was while it observes");
  Result<EditReport> done = editor.run(observer, progress, std::move(stop));
  // Rows before the start were not touched. A forward pass that failed has emptied the state.
  if (!done && state.n_cells() >= source.start->n_cells) (void)state.restore(*source.start);
  return done;
}

}  // namespace forebay
