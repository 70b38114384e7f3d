#include "core/log.h"

#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace forebay::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Lives to the end of the process: a thread may still log while statics are destroyed.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    // Colours appear on a terminal only.
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(spdlog::color_mode::automatic);
    auto* made = new spdlog::logger("forebay", std::move(sink));
    made->set_pattern("%^%l%$: %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
}
bool enabled(Level level) {
  return logger().should_log(to_spdlog(level));
}
void write(Level level, std::string_view message) {
  logger().log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace forebay::log
