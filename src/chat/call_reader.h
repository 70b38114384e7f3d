/// Reads one tool call byte by byte: its name first, then its arguments as JSON text while they come.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "chat/tool_schemas.h"

namespace forebay {

/// Confined. Fed with what follows <tool_call>, or from <function= on where that is missing.
class CallReader {
 public:
  enum class Status {
    kHead,      // no name yet
    kBody,      // the name is known
    kEnded,     // the arguments are whole; a closing </tool_call> may follow
    kClosed,    // and so is the call, </tool_call> included
    kRejected,  // these bytes are no call; only from kHead
  };

  virtual ~CallReader() = default;
  /// Appends what became certain of the arguments.
  virtual Status push(char c, std::string& arguments) = 0;
  /// The answer ended here. kEnded when what there is is the whole call all the same.
  virtual Status finish(std::string& arguments) = 0;

  /// Valid from kBody on.
  const std::string& name() const { return name_; }
  /// Something was not as it should be, though the arguments could be read.
  bool malformed() const { return malformed_; }

 protected:
  std::string name_;
  bool malformed_ = false;
};

/// How much white space may stand between two tags that belong together, and how long a name may be.
inline constexpr size_t kMaxGap = 64;
inline constexpr size_t kMaxName = 256;

/// `tools` outlives the reader.
std::unique_ptr<CallReader> make_xml_call_reader(const ToolSchemas& tools);
std::unique_ptr<CallReader> make_json_call_reader();

inline bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

enum class TagMatch { kNo, kPrefix, kWhole };
/// Whether `text` is `tag`, or how `tag` begins.
inline TagMatch match_tag(std::string_view text, std::string_view tag) {
  if (text.size() > tag.size() || tag.substr(0, text.size()) != text) return TagMatch::kNo;
  return text.size() == tag.size() ? TagMatch::kWhole : TagMatch::kPrefix;
}

}  // namespace forebay
