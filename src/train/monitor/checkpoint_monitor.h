/// Two checkpoints, matrix by matrix and layer by layer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/storage.h"
#include "train/monitor/matrix_change.h"

namespace forebay::train {

struct NamedChange {
  std::string name;  // with [i] for a matrix of a stack (experts)
  int layer = -1;    // -1: of none
  MatrixChange change;
};

/// Means over a layer's matrices; angles are the largest of any. NaN where nothing was computed.
struct LayerChange {
  int layer = -1;
  int64_t n_matrices = 0;
  double changed_bf16 = 0;  // by entries
  double spectral_shift = 0, angle = 0, principal_overlap = 0, effective_rank_share = 0;
};

struct CheckpointChange {
  std::vector<NamedChange> matrices;  // in the order of the file
  std::vector<LayerChange> layers;    // what belongs to none comes last
};

/// Safetensors files or directories, a run's own checkpoints too (weights_of.h). Float weights of two and
/// more dimensions are compared; the last two are the matrix. `progress` gets (done, all). Errors: those of
/// the files, kInvalidArgument for a tensor that the other does not have in this shape and type, or when
/// there is no matrix at all.
Result<CheckpointChange> compare_checkpoints(Storage& storage, const Path& base, const Path& now,
                                             const MonitorOptions& options,
                                             const std::function<void(size_t, size_t)>& progress = {});

/// "model.layers.3.mlp" and "blk.3.ffn" -> 3; else -1.
int layer_of(std::string_view name);

std::string monitor_table(const CheckpointChange& change);
std::string monitor_json(const CheckpointChange& change);
/// Gnuplot: angle and spectral shift over layers.
std::string monitor_script(const CheckpointChange& change, const Path& output);

}  // namespace forebay::train
