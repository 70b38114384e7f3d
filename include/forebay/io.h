/// How files are read. Changes speed only.
#pragma once

#include <optional>
#include <string_view>

namespace forebay {

enum class ReadEngine {
  kAuto,     // the kernel's queue where there is one
  kUring,    // the kernel's queue (io_uring)
  kThreads,  // threads that wait for one read each
};

// "auto", "uring", "threads".
std::string_view name_of(ReadEngine engine);
std::optional<ReadEngine> read_engine_from_name(std::string_view name);

}  // namespace forebay
