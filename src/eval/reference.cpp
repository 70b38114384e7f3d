#include "eval/reference.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/bytes.h"
#include "eval/text_span.h"
#include "gguf/fingerprint.h"
#include "model/model.h"

namespace forebay {
namespace {

constexpr char kMagic[] = "FBYREFR";  // and its 0
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 8 + 4 + 4 + 8 + 8;  // magic, version, columns, identity, checksum

/// The values of all rows of all windows, in order, and their checksum behind them.
std::vector<std::byte> header_bytes(uint32_t columns, uint64_t identity) {
  std::vector<std::byte> out(sizeof kMagic);
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  put_le(out, kVersion);
  put_le(out, columns);
  put_le(out, identity);
  put_le(out, checksum(out));
  return out;
}

class Computed : public KldReference {
 public:
  explicit Computed(Engine& engine) : engine_(engine) {}

  Engine& engine() override { return engine_; }

  Result<void> read(const KldWindow& window, std::vector<float>& logits) override {
    Model& model = engine_.model();
    const auto V = static_cast<size_t>(model.config().n_vocab);
    const std::span<const int32_t> ids(window.ids);
    const auto n_cells = static_cast<int64_t>(ids.size());
    if (!state_ || state_->context() < n_cells) {
      state_.reset();
      state_ = TRY(model.new_state(n_cells));
    }
    state_->reset();
    logits.resize(ids.size() * V);
    for (size_t first = 0; first < ids.size(); first += model.max_window()) {
      const size_t n = std::min<size_t>(model.max_window(), ids.size() - first);
      const Span span = text_span(model, *state_, ids, first, n);
      const ForwardOutput output = TRY(model.forward({&span, 1}));
      std::copy_n(output.logits.data, n * V, logits.begin() + first * V);
      TRY(keep(output.head_rows));
    }
    return {};
  }

 protected:
  virtual Result<void> keep(TensorView<const float>) { return {}; }

  Engine& engine_;

 private:
  std::optional<SequenceState> state_;
};

class Collected : public Computed {
 public:
  using Computed::Computed;
  std::vector<float> rows;

 protected:
  Result<void> keep(TensorView<const float> more) override {
    for (int64_t r = 0; r < more.rows; ++r) rows.insert(rows.end(), more.row(r), more.row(r) + more.cols);
    return {};
  }
};

class Recorded : public Computed {
 public:
  Recorded(Engine& engine, AtomicFile file) : Computed(engine), file_(std::move(file)) {}

  Result<void> finish() override {
    std::vector<std::byte> out;
    put_le(out, sum_);
    TRY(file_.file().append(out));
    return file_.commit();
  }

 protected:
  Result<void> keep(TensorView<const float> rows) override {
    buffer_.clear();
    for (int64_t r = 0; r < rows.rows; ++r)
      for (int64_t i = 0; i < rows.cols; ++i) put_le(buffer_, std::bit_cast<uint32_t>(rows.row(r)[i]));
    sum_ = checksum(buffer_, sum_);
    return file_.file().append(buffer_);
  }

 private:
  AtomicFile file_;
  std::vector<std::byte> buffer_;
  uint64_t sum_ = kChecksumSeed;
};

/// Logits of one window from what the output head read, a piece at a time: fill(n, rows) gives the next n
/// rows.
template <typename Fill>
Result<void> logits_from_rows(Model& model, size_t n_rows, std::vector<float>& rows, Fill fill,
                              std::vector<float>& logits) {
  const auto V = static_cast<size_t>(model.config().n_vocab);
  const int64_t D = model.config().d_model;
  logits.resize(n_rows * V);
  for (size_t first = 0; first < n_rows; first += model.max_window()) {
    const size_t n = std::min<size_t>(model.max_window(), n_rows - first);
    rows.resize(n * D);
    TRY(fill(rows));
    const TensorView<const float> out =
        TRY(model.head(TensorView<const float>(rows.data(), static_cast<int64_t>(n), D)));
    std::copy_n(out.data, n * V, logits.begin() + first * V);
  }
  return {};
}

class Stored : public KldReference {
 public:
  Stored(Engine& engine, std::unique_ptr<ReadableFile> file) : engine_(engine), file_(std::move(file)) {}

  Engine& engine() override { return engine_; }

  Result<void> read(const KldWindow& window, std::vector<float>& logits) override {
    const auto fill = [this](std::vector<float>& rows) -> Result<void> {
      bytes_.resize(rows.size() * sizeof(float));
      TRY(file_->read_at(at_, bytes_));
      at_ += bytes_.size();
      sum_ = checksum(bytes_, sum_);
      for (size_t i = 0; i < rows.size(); ++i)
        rows[i] = std::bit_cast<float>(get_le<uint32_t>(bytes_, i * sizeof(float)));
      return {};
    };
    return logits_from_rows(engine_.model(), window.ids.size(), rows_, fill, logits);
  }

  /// The identity says that the rows are the right ones; this, that they are whole.
  Result<void> finish() override {
    std::vector<std::byte> bytes(sizeof(uint64_t));
    TRY(file_->read_at(at_, bytes));
    if (get_le<uint64_t>(bytes, 0) != sum_)
      return Error{Code::kCorrupt,
                   fmt::format("{}: its checksum does not match: it is damaged, delete it and measure again",
                               file_->path().string())};
    return {};
  }

 private:
  Engine& engine_;
  std::unique_ptr<ReadableFile> file_;
  uint64_t at_ = kHeaderBytes;
  uint64_t sum_ = kChecksumSeed;
  std::vector<std::byte> bytes_;
  std::vector<float> rows_;
};

class Remembered : public KldReference {
 public:
  Remembered(Engine& engine, std::span<const float> rows) : engine_(engine), left_(rows) {}

  Engine& engine() override { return engine_; }

  Result<void> read(const KldWindow& window, std::vector<float>& logits) override {
    const auto fill = [this](std::vector<float>& rows) -> Result<void> {
      std::copy_n(left_.begin(), rows.size(), rows.begin());
      left_ = left_.subspan(rows.size());
      return {};
    };
    return logits_from_rows(engine_.model(), window.ids.size(), rows_, fill, logits);
  }

 private:
  Engine& engine_;
  std::span<const float> left_;
  std::vector<float> rows_;
};

/// Changes with everything that changes the logits.
uint64_t identity_of(Engine& engine, const EngineOptions& o, std::span<const KldWindow> windows) {
  std::vector<std::byte> out;
  put_le(out, fingerprint(engine.file()));
  const std::string settings = fmt::format(
      "int8_activations={} reference_kernels={} kv={} route_bias={} route_bias_prompt={}", o.int8_activations,
      o.reference_kernels, name_of(engine.info().kv), o.route_bias, o.route_bias_prompt);
  uint64_t sum = checksum(std::as_bytes(std::span(settings)), checksum(out));
  for (const KldWindow& window : windows) {
    out.clear();
    put_le(out, static_cast<uint64_t>(window.ids.size()));
    for (const int32_t id : window.ids) put_le(out, static_cast<uint32_t>(id));
    sum = checksum(out, sum);
  }
  return sum;
}

Result<std::unique_ptr<KldReference>> record(Storage& storage, const Path& path, Engine& engine,
                                             uint64_t identity) {
  AtomicFile file = TRY(AtomicFile::create(storage, path));
  const auto columns = static_cast<uint32_t>(engine.model().config().d_model);
  TRY(file.file().append(header_bytes(columns, identity)));
  return std::unique_ptr<KldReference>(std::make_unique<Recorded>(engine, std::move(file)));
}

Result<std::unique_ptr<KldReference>> restore(Storage& storage, const Path& path, Engine& engine,
                                              uint64_t identity) {
  std::unique_ptr<ReadableFile> file = TRY(storage.open(path));
  std::vector<std::byte> header(kHeaderBytes);
  const auto columns = static_cast<uint32_t>(engine.model().config().d_model);
  const std::vector<std::byte> expected = header_bytes(columns, identity);
  const bool read = file->size() >= kHeaderBytes && file->read_at(0, header).has_value();
  if (!read || !std::equal(expected.begin(), expected.begin() + 12, header.begin()))
    return Error{Code::kCorrupt,
                 fmt::format("{}: no stored reference of version {}", path.string(), kVersion)};
  if (header != expected)
    return Error{
        Code::kInvalidArgument,
        fmt::format("{}: stored for another reference model, other options or other texts; delete it "
                    "or name another file",
                    path.string())};
  return std::unique_ptr<KldReference>(std::make_unique<Stored>(engine, std::move(file)));
}

}  // namespace

std::unique_ptr<KldReference> computed_reference(Engine& engine) {
  return std::make_unique<Computed>(engine);
}

Result<std::vector<float>> reference_rows(Engine& engine, std::span<const KldWindow> windows,
                                          std::stop_token stop) {
  Collected reference(engine);
  std::vector<float> logits;
  for (const KldWindow& window : windows) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "the reference's pass was cancelled"};
    TRY(reference.read(window, logits));
  }
  return std::move(reference.rows);
}

std::unique_ptr<KldReference> remembered_reference(Engine& engine, std::span<const float> rows) {
  return std::make_unique<Remembered>(engine, rows);
}

Result<std::unique_ptr<KldReference>> kept_reference(Storage& storage, const Path& path, Engine& engine,
                                                     const EngineOptions& options,
                                                     std::span<const KldWindow> windows) {
  const uint64_t identity = identity_of(engine, options, windows);
  return storage.exists(path) ? restore(storage, path, engine, identity)
                              : record(storage, path, engine, identity);
}

}  // namespace forebay
