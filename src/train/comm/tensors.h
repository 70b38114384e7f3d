/// Named tensors from one process to another, under a header of their own (tensor_header.h).
#pragma once

#include <map>
#include <string>

#include <torch/torch.h>

#include "forebay/result.h"

#include "train/comm/comm.h"

namespace forebay::train {

using TensorMap = std::map<std::string, torch::Tensor>;

/// As one run of bytes, which is what a broadcast takes. Errors: kUnsupported for a type that has no place in
/// a header, by name.
Result<Bytes> pack_tensors(const TensorMap& tensors);
/// On the CPU. Errors: kCorrupt: the header's, a name that comes twice, other bytes than were announced.
Result<TensorMap> unpack_tensors(const Bytes& bytes);

/// As a message with the headers and messages of at most 256 MB with what they announce, so that no model is
/// too large. Both sides give the same tag. Errors: those of Comm, and pack_tensors()'s; the second's begin
/// with "rank 2 sent ".
Result<void> send_tensors(Comm& comm, int to, uint64_t tag, const TensorMap& tensors);
Result<TensorMap> recv_tensors(Comm& comm, int from, uint64_t tag);

}  // namespace forebay::train
