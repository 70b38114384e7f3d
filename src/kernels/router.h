/// The router of a mixture of experts: logits -> the chosen experts and their weights.
#pragma once

#include <cstdint>
#include <span>

namespace forebay {

/// For one row: the k experts of largest logit (ties: lowest id), largest first, with weights
/// softmax over the chosen logits, which equals softmax over all followed by renormalising.
///
/// logits_E  any E >= k >= 1. NaN logits sort last. ids, weights  k entries.
void route_top_k(std::span<const float> logits_E, int k, int32_t* ids, float* weights);

}  // namespace forebay
