/// Who sees the router's work: traces, and policies that rank experts by more than their use.
#pragma once

#include <cstdint>
#include <span>

namespace forebay {

enum class RoutePhase : uint8_t { kPrefill, kDecode, kDraft };

/// One row at one block. The spans are valid during the call only.
struct RouteEvent {
  int32_t block = 0;
  int32_t token = -1;  // its id
  RoutePhase phase = RoutePhase::kDecode;
  std::span<const float> logits_E = {};  // as the router gave them
  std::span<const int32_t> chosen = {};  // largest weight first
};

/// Confined to the thread that runs the forward pass.
class RouteObserver {
 public:
  virtual ~RouteObserver() = default;
  virtual void on_route(const RouteEvent& event) = 0;
};

}  // namespace forebay
