#include "core/progress.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/format.h"

namespace forebay {
namespace {

using namespace std::chrono_literals;

constexpr auto kBarInterval = 100ms;
constexpr auto kLineInterval = 5s;
constexpr int kBarWidth = 20;

ProgressStyle resolve(const ProgressOptions& options) {
  if (options.style != ProgressStyle::kAuto) return options.style;
  return ::isatty(::fileno(options.out)) ? ProgressStyle::kBar : ProgressStyle::kLines;
}

size_t terminal_columns(std::FILE* out) {
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string bar(uint64_t done, uint64_t total) {
  const int filled = static_cast<int>(static_cast<double>(kBarWidth) * done / total);
  return fmt::format("[{:#<{}}{:.<{}}] ", "", filled, "", kBarWidth - filled);
}

std::string amount(uint64_t value, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? human_bytes(value) : grouped_digits(value);
}

}  // namespace

std::string progress_text(std::string_view label, uint64_t done, uint64_t total, ProgressUnit unit,
                          std::chrono::duration<double> elapsed, std::string_view detail) {
  std::string text(label);
  if (total > 0) text += fmt::format("  {} %", static_cast<int>(100.0 * done / total));
  text += fmt::format("  {}", amount(done, unit));
  if (total > 0) text += fmt::format(" of {}", amount(total, unit));
  // The first moments give a rate that jumps about.
  if (elapsed >= 500ms && done > 0) {
    const double rate = done / elapsed.count();
    text += unit == ProgressUnit::kBytes ? fmt::format("  {}/s", human_bytes(static_cast<uint64_t>(rate)))
                                         : fmt::format("  {:.1f}/s", rate);
    if (done < total)
      text += fmt::format("  {} left", human_duration(std::chrono::duration<double>((total - done) / rate)));
    else
      text += fmt::format("  in {}", human_duration(elapsed));
  }
  if (!detail.empty()) text += fmt::format("  {}", detail);
  return text;
}

Progress::Progress(std::string label, uint64_t total, ProgressOptions options)
    : label_(std::move(label)),
      total_(total),
      options_(std::move(options)),
      style_(resolve(options_)),
      start_(options_.now()),
      // A bar appears at once; lines only for what takes long.
      next_draw_(style_ == ProgressStyle::kBar ? start_ : start_ + kLineInterval) {}

Progress::~Progress() {
  finish();
}

void Progress::set(uint64_t done) {
  done_ = total_ > 0 ? std::min(done, total_) : done;
  if (style_ == ProgressStyle::kSilent || finished_) return;
  const Time now = options_.now();
  if (now >= next_draw_) draw(now);
}

void Progress::set_detail(std::string detail) {
  detail_ = std::move(detail);
  set(done_);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (style_ == ProgressStyle::kSilent) return;
  draw(options_.now());
  if (style_ == ProgressStyle::kBar) std::fputc('\n', options_.out);
  std::fflush(options_.out);
}

void Progress::draw(Time now) {
  std::string text = progress_text(label_, done_, total_, options_.unit, now - start_, detail_);
  if (style_ == ProgressStyle::kBar) {
    if (total_ > 0) text.insert(0, bar(done_, total_));
    // A line that wraps could not be redrawn. Cut between characters, not inside one.
    size_t end = std::min(text.size(), terminal_columns(options_.out) - 1);
    while (end < text.size() && end > 0 && (text[end] & 0xC0) == 0x80) --end;
    fmt::print(options_.out, "\r{}\x1b[K", std::string_view(text).substr(0, end));
    next_draw_ = now + kBarInterval;
  } else {
    fmt::print(options_.out, "{}\n", text);
    next_draw_ = now + kLineInterval;
  }
  std::fflush(options_.out);
}

}  // namespace forebay
