/// What the router did, in a file: docs/formats/trace.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"
#include "experts/route_candidates.h"
#include "experts/route_observer.h"

namespace forebay {

/// The model that was traced.
struct TraceHeader {
  std::string model;
  int32_t n_experts = 0;               // of one block
  int32_t n_used = 0;                  // per row
  std::vector<uint64_t> expert_bytes;  // read for one expert, by block; 0: a block without experts
  std::vector<uint64_t> slot_bytes;    // one expert's room in a cache, by block

  int n_blocks() const { return static_cast<int>(expert_bytes.size()); }
  int n_candidates() const { return std::min(n_experts, int32_t{kMaxRouteCandidates}); }
};

/// Writes a frame whenever enough came together. Confined, like every RouteObserver.
class TraceWriter : public RouteObserver {
 public:
  /// Creates or truncates the file, which grows in place: a trace is readable while it is written.
  /// Errors: kInvalidArgument for a header that no reader would take, kIo.
  static Result<std::unique_ptr<TraceWriter>> create(Storage& storage, const Path& path, TraceHeader header);
  ~TraceWriter() override;

  /// One row. Nothing more is recorded after a write failed.
  void on_route(const RouteEvent& event) override;
  /// Writes what is left and the end mark, syncs and closes. Errors: the first of any write so far.
  Result<void> finish();

  uint64_t n_rows() const;
  uint64_t bytes_written() const;

 private:
  struct Impl;
  explicit TraceWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct TraceRow {
  bool starts_request = false;  // rows up to the next such one were asked for together
  RoutePhase phase = RoutePhase::kDecode;
  int32_t block = 0;
  int32_t token = -1;
  RouteCandidates candidates;
  std::span<const uint16_t> chosen;  // largest weight first
};

/// Confined.
class TraceReader {
 public:
  /// Errors: kCorrupt, kUnsupported for another version, those of opening and mapping.
  static Result<TraceReader> open(Storage& storage, const Path& path);
  TraceReader(TraceReader&&) noexcept;
  ~TraceReader();

  const TraceHeader& header() const;
  /// The next row, valid until the next call; none at the end. Errors: kCorrupt names the frame's offset.
  Result<std::optional<TraceRow>> next();
  /// After the last row: false when the file ends without its end mark, because its writer did not finish. A
  /// last frame that is not whole is then left out.
  bool complete() const;

 private:
  struct Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
