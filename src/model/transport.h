/// How a difference of two recurrent states travels over tokens: both would have added the same new memories,
/// so the difference only decays and is overwritten.
///
/// Per value head, with D [k_dim][v_dim] and unit k:  D <- g (I - b k k^T) D  for each cell in order. That is
/// the gated delta rule without its new values.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/context.h"
#include "kernels/gated_delta.h"
#include "model/recurrence_log.h"

namespace forebay {

/// Over the log's cells [first, end) of a block. `heads` lists the value heads to take; the others of
/// `difference` [n_v_heads][k_dim][v_dim] become zero: what they would carry is too small to matter. The log
/// must cover the cells and have keys.
void transport_difference(KernelContext& ctx, const GatedDeltaShape& shape, const RecurrenceLog& log,
                          int block, int64_t first, int64_t end, std::span<const int> heads,
                          std::span<float> difference);

/// The definition, in f64: scalar and slow.
void transport_difference_ref(const GatedDeltaShape& shape, const RecurrenceLog& log, int block,
                              int64_t first, int64_t end, std::span<const int> heads,
                              std::span<float> difference);

}  // namespace forebay
