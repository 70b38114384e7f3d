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

/// Cache-aware routing: experts that are in memory are preferred to others that the router likes about as
/// well.
struct RouteBias {
  float lambda = 0;  // score = p * (1 + lambda) for resident experts, p for others; at least 0
  int protect = 3;   // this many true ranks are always chosen
  int window = 16;   // only these many true ranks can be chosen, or k if that is more
};
constexpr int kMaxRouteWindow = 64;

/// As route_top_k, by score instead of logit (ties: better true rank). Weights are the true probabilities,
/// renormalised over the chosen; ids stand in their true order. With lambda 0, or nothing resident among the
/// window, the bits are route_top_k's.
///
/// resident_E  not 0: in memory. max(k, bias.window) at most kMaxRouteWindow.
void route_top_k_biased(std::span<const float> logits_E, int k, const RouteBias& bias,
                        std::span<const uint8_t> resident_E, int32_t* ids, float* weights);

/// The choice alone: which k of the ranks, as a set of bits. `logits` are in true order, `resident` has the
/// bits of the resident ranks. Takes all where there are no more than k.
uint64_t choose_biased(std::span<const float> logits, uint64_t resident, int k, const RouteBias& bias);

}  // namespace forebay
