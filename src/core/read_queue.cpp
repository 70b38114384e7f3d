#include "core/read_queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/page_range.h"
#include "core/storage.h"

namespace forebay {

std::string_view name_of(ReadEngine engine) {
  switch (engine) {
    case ReadEngine::kAuto:
      return "auto";
    case ReadEngine::kUring:
      return "uring";
    case ReadEngine::kThreads:
      return "threads";
  }
  return "unknown";
}

std::optional<ReadEngine> read_engine_from_name(std::string_view name) {
  for (ReadEngine engine : {ReadEngine::kAuto, ReadEngine::kUring, ReadEngine::kThreads})
    if (name == name_of(engine)) return engine;
  return std::nullopt;
}

Error short_read(const ReadableFile& file, uint64_t offset, uint64_t wanted, uint64_t got) {
  return {Code::kIo, fmt::format("{}: short read at offset {}: {} bytes wanted, {} got", file.path().string(),
                                 offset, wanted, std::min(got, wanted))};
}

Result<std::unique_ptr<ReadQueue>> make_read_queue(ReadEngine engine, int depth) {
  if (depth < 1 || depth > 1024)
    return Error{Code::kInvalidArgument, fmt::format("read queue depth: {}, expected 1 to 1024", depth)};
  if (engine != ReadEngine::kThreads) {
    if (std::unique_ptr<ReadQueue> queue = make_uring_read_queue(depth)) return queue;
    if (engine == ReadEngine::kUring)
      return Error{Code::kUnsupported,
                   "io_uring: refused by the system, or this build has none; expected threads"};
  }
  // A thread costs more than a place in a queue, and a drive gains little from more.
  return make_threaded_read_queue(std::min(depth, 16));
}

}  // namespace forebay
