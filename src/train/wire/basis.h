/// The bases that low-rank codecs project on, one per boundary: what is in use, what waits to be, and the
/// sketch that the next one is made from.
///
/// A basis changes in two steps. update() makes the next one and leaves it pending; activate() puts it in use
/// once every pass that must agree with earlier log-probs is done; discard() forgets it (a step that was not
/// committed). What is saved and restored is never pending.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/wire/codec.h"

namespace forebay::train {

/// kAtOnce is the mistake that the stages prevent, kept for the test that shows it.
enum class Publish { kStaged, kAtOnce };

/// Confined.
class BasisBank {
 public:
  /// `seed` draws every boundary's first frame. accumulate: the sketch sums up all steps since the last
  /// refresh; else it holds the last step's rows.
  BasisBank(int64_t width, int64_t rank, uint64_t seed, bool accumulate);

  /// Q [W, r] in use at this boundary, orthonormal columns, f32.
  const torch::Tensor& active(int64_t boundary, torch::Device device);

  /// Adds rows to the boundary's sketch, Y += X^T (X Q). To be called by the sender for the rows of the pass
  /// that is trained, and no other (not for probes, references or old log-probs); whether gradients are on
  /// plays no part.
  void harvest(const torch::Tensor& x_NW, const WireKey& key);

  /// Makes the boundary's next basis from its sketch: one step of subspace iteration. Errors, all leaving
  /// everything as it was: kInvalidArgument without a harvested row, or when one is pending already;
  /// kCorrupt for a sketch that is not finite.
  Result<void> update(int64_t boundary, Publish publish = Publish::kStaged);
  bool has_pending() const;
  /// Puts all pending bases in use, and begins their sketches anew. Returns how many there were.
  int64_t activate();
  /// Forgets all pending bases; their sketches stay.
  void discard();

  /// The pending basis as it goes to the other end of the boundary (f32, row-major, little-endian), and its
  /// arrival there. Errors: kNotFound when nothing is pending; kCorrupt for another size or numbers that are
  /// no orthonormal columns.
  Result<std::vector<uint8_t>> pending_bytes(int64_t boundary) const;
  Result<void> set_pending(int64_t boundary, const std::vector<uint8_t>& bytes);
  int64_t refresh_bytes() const { return width_ * rank_ * 4; }

  /// Bases put in use since the start, over all boundaries: boundaries x fires.
  int64_t n_refreshes() const { return n_refreshes_; }
  int64_t harvested_rows(int64_t boundary) const;
  /// Of all bases in use; pending ones play no part.
  uint64_t id() const;

  /// For a checkpoint. Errors: kInvalidArgument for the state of a bank of another shape.
  std::map<std::string, torch::Tensor> state() const;
  Result<void> restore(const std::map<std::string, torch::Tensor>& state);

 private:
  struct Basis {
    torch::Tensor active_WR;                  // undefined: the first frame, not made yet
    torch::Tensor sketch_WR;                  // undefined: empty
    std::optional<torch::Tensor> pending_WR;  // on the CPU
    int64_t sketch_rows = 0;
    int64_t sketch_step = 0;  // of the last harvest
    int64_t generation = 0;   // refreshes so far
    uint64_t content = 0;     // checksum of active_WR, once refreshed
  };

  void publish(Basis& basis, const torch::Tensor& q_WR);

  int64_t width_;
  int64_t rank_;
  uint64_t seed_;
  bool accumulate_;
  int64_t n_refreshes_ = 0;
  std::map<int64_t, Basis> bases_;
};

/// Of a tensor's bytes, for accidents.
uint64_t content_checksum(const torch::Tensor& tensor);

/// The share of the rows' energy that lies in the span of Q: |X Q|^2 / |X|^2.
double captured_energy(const torch::Tensor& x_NW, const torch::Tensor& q_WR);

}  // namespace forebay::train
