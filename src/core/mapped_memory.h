/// Hints about mapped file pages. They change speed only, and what the system will not do is not done.
#pragma once

#include <cstddef>
#include <span>

namespace forebay {

enum class MapAdvice {
  kRandom,    // single pages far apart: a fault reads no neighbours
  kWillNeed,  // start reading them now
  kPopulate,  // read them all, and wait
  kGiveUp,    // nobody needs them soon: the system may use their memory
};

/// `bytes` lie in a mapping; whole pages around them are meant.
void advise(std::span<const std::byte> bytes, MapAdvice advice);

/// Whether most of the pages around `bytes`, of a mapping, are in memory, as far as the system says.
bool mostly_in_memory(std::span<const std::byte> bytes);

}  // namespace forebay
