/// The side that a candidate is measured against: computed, or read back from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "forebay/engine.h"
#include "forebay/result.h"

#include "core/storage.h"

namespace forebay {

/// A document, or a piece of one: read from an empty state.
struct KldWindow {
  size_t text = 0;    // which of the texts
  int64_t first = 0;  // index of its first token in the text
  std::vector<int32_t> ids;
};

/// Confined, as its engine is. Windows are asked for in order, each once.
class KldReference {
 public:
  virtual ~KldReference() = default;
  virtual Engine& engine() = 0;
  /// All positions' logits of the next window, [tokens][vocabulary].
  virtual Result<void> read(const KldWindow& window, std::vector<float>& logits) = 0;
  /// After the last window.
  virtual Result<void> finish() { return {}; }
};

/// Forward passes. The engine must outlive it.
std::unique_ptr<KldReference> computed_reference(Engine& engine);

/// What the output head read is kept in `path` (docs/formats/reference.md), a few thousandths of the logits'
/// size: the head alone gives their bits again. A file that is there is used instead of forward passes; one
/// that is not appears when the last window was read. Errors: kInvalidArgument when it is of another model,
/// other options that change results, or other windows; kCorrupt; kIo.
Result<std::unique_ptr<KldReference>> kept_reference(Storage& storage, const Path& path, Engine& engine,
                                                     const EngineOptions& options,
                                                     std::span<const KldWindow> windows);

/// The same in memory: what the head reads over all windows, [tokens][d_model], and a reference that gives it
/// to the head of an engine of the same model, which may be another than computed it. `rows` must outlive it.
Result<std::vector<float>> reference_rows(Engine& engine, std::span<const KldWindow> windows,
                                          std::stop_token stop);
std::unique_ptr<KldReference> remembered_reference(Engine& engine, std::span<const float> rows);

}  // namespace forebay
