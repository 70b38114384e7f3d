/// The state of a rounding codec whose passes have noise of their own (share = false): how many there were.
#pragma once

#include <map>
#include <string>

#include "train/wire/quantizer.h"

namespace forebay::train {

inline std::map<std::string, torch::Tensor> unshared_state(const Quantizer& quantizer,
                                                           const CodecOptions& options) {
  if (options.share) return {};
  return {{"passes", torch::tensor(quantizer.n_passes(), torch::kInt64)}};
}

/// Errors: kInvalidArgument for the state of another codec.
inline Result<void> restore_unshared(const std::map<std::string, torch::Tensor>& state,
                                     const CodecOptions& options, Quantizer& quantizer) {
  const auto found = state.find("passes");
  const bool is_ours =
      options.share ? state.empty() : state.size() == 1 && found != state.end() && found->second.numel() == 1;
  if (!is_ours)
    return Error{Code::kInvalidArgument, "codec " + options.name +
                                             (options.share ? ": has no state, some was given"
                                                            : ": its state is one number, 'passes'")};
  if (!options.share) quantizer.set_n_passes(found->second.item<int64_t>());
  return {};
}

}  // namespace forebay::train
