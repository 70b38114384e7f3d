/// Finds stop strings in streamed text, wherever token borders fall.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forebay {

/// Confined.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);

  /// Text that can be shown now. Once matched() it is what came before the stop string, and nothing follows.
  std::string push(std::string_view text);
  /// What was held back as a possible beginning of a stop string.
  std::string finish();
  bool matched() const { return matched_; }
  /// The stop string that was found.
  const std::string& match() const { return match_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string match_;
  bool matched_ = false;
};

}  // namespace forebay
