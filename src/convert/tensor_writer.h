#pragma once

#include <stop_token>

#include "convert/tensor_plan.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "gguf/gguf.h"

namespace forebay::convert {

/// Reads, encodes and appends one tensor as `type`, a few MiB at a time, rows in parallel. `wrote` is called
/// with the bytes of each piece.
/// Errors: kCancelled; those of the writer; values that the type cannot hold, by tensor, row and place.
Result<void> write_tensor(GgufWriter& writer, const OutputTensor& tensor, DType type, ThreadPool& pool,
                          FunctionRef<void(uint64_t bytes)> wrote, const std::stop_token& stop);

}  // namespace forebay::convert
