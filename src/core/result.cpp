#include "forebay/result.h"

namespace forebay {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kIo:
      return "input/output";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace forebay
