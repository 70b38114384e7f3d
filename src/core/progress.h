/// How far a long command is, for the person waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace forebay {

enum class ProgressStyle {
  kAuto,    // kBar on a terminal, kLines elsewhere
  kBar,     // one line, redrawn at most ten times a second
  kLines,   // a new line every five seconds
  kSilent,  // nothing
};

enum class ProgressUnit { kBytes, kItems };

struct ProgressOptions {
  ProgressStyle style = ProgressStyle::kAuto;
  ProgressUnit unit = ProgressUnit::kBytes;
  std::FILE* out = stderr;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Confined. Draws only inside its calls; the destructor ends the line.
class Progress {
 public:
  /// `label` says what is done ("convert"); total 0 means that it is not known.
  Progress(std::string label, uint64_t total, ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;

  void advance(uint64_t amount) { set(done_ + amount); }
  void set(uint64_t done);
  /// What is being worked on, shown at the end of the line.
  void set_detail(std::string detail);
  /// Draws the last state and ends the line. Later calls draw nothing.
  void finish();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void draw(Time now);

  const std::string label_;
  const uint64_t total_;
  const ProgressOptions options_;
  const ProgressStyle style_;  // resolved
  const Time start_;
  Time next_draw_;
  uint64_t done_ = 0;
  std::string detail_;
  bool finished_ = false;
};

/// The text of a progress line without bar: "convert  42 %  1.23 GiB of 2.93 GiB  412 MiB/s  4.2 s left
/// detail".
std::string progress_text(std::string_view label, uint64_t done, uint64_t total, ProgressUnit unit,
                          std::chrono::duration<double> elapsed, std::string_view detail);

}  // namespace forebay
