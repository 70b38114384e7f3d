/// Which part of a step is running, and whether lossy things happened only where they may.
#pragma once

#include <array>
#include <cstdint>

namespace forebay::train {

/// The paths of a step that may meet a codec, and those that must not.
enum class StepPath { kNone, kOldLogProbs, kTrain, kReference, kProbe, kAnchorReplay, kValidation };

/// Confined. Codecs (or who calls them) report each call; a run is clean while no call came outside a path
/// that a codec belongs to.
class Confinement {
 public:
  /// The path that runs while it lives; nests.
  class Tag {
   public:
    Tag(Confinement& owner, StepPath path) : owner_(owner), before_(owner.path_) { owner_.path_ = path; }
    ~Tag() { owner_.path_ = before_; }
    Tag(const Tag&) = delete;

   private:
    Confinement& owner_;
    StepPath before_;
  };

  void codec_called() { ++calls_[static_cast<size_t>(path_)]; }
  int64_t calls(StepPath path) const { return calls_[static_cast<size_t>(path)]; }
  /// Calls without a tag, or on a path that is dense by definition.
  int64_t stray_calls() const {
    return calls(StepPath::kNone) + calls(StepPath::kProbe) + calls(StepPath::kAnchorReplay) +
           calls(StepPath::kValidation);
  }
  bool clean() const { return stray_calls() == 0; }

 private:
  StepPath path_ = StepPath::kNone;
  std::array<int64_t, 7> calls_ = {};
};

}  // namespace forebay::train
