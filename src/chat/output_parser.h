/// Splits a model's answer, while it streams, into reasoning, content and tool calls. The policy for
/// everything that is not as it should be stands in docs/tools.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/call_reader.h"
#include "chat/chat_style.h"
#include "chat/line_context.h"
#include "chat/tool_schemas.h"

namespace forebay {

enum class CallState {
  kComplete,   // arguments are a JSON object
  kMalformed,  // arguments are what the model wrote, and not a JSON object
  kCutOff,     // the answer ended inside the call: arguments are the beginning of a JSON object
};
std::string_view name_of(CallState state);  // "complete", "malformed", "cut off"

struct OutputEvent {
  enum class Kind { kReasoning, kContent, kCallBegin, kArguments, kCallEnd };
  Kind kind;
  std::string text;  // the delta; of kCallEnd, the exact bytes of the call and the white space before it
  int call = -1;     // index of the call, from 0
  std::string id;    // kCallBegin: unique
  std::string name;  // kCallBegin
  CallState state = CallState::kComplete;  // kCallEnd
};

struct ParsedCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text, as streamed
  std::string bytes;
  CallState state = CallState::kCutOff;
};

/// All events of an answer, joined.
struct ParsedAnswer {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  /// What the model wrote after its reasoning, to the byte: content and calls in their order.
  std::string text;
  /// A call was taken from thinking that was never closed: `text` does not have it.
  bool call_in_reasoning = false;
};

/// "call_" and 24 letters and digits, from the system's randomness.
std::string random_call_id();

/// Events do not depend on how the text is cut into pieces, but for where deltas begin and end. Confined.
class OutputParser {
 public:
  using Events = std::vector<OutputEvent>;

  /// `tools`: of the request; without any, calls stay text. `starts_in_reasoning`: the prompt left <think>
  /// open.
  OutputParser(ChatStyle style, ToolSchemas tools, bool starts_in_reasoning,
               std::function<std::string()> new_id = random_call_id);

  /// What became certain with this text, which is whole UTF-8 characters.
  Events feed(std::string_view text);
  /// The answer is over: the rest, as what it would have been.
  Events finish();

  const ParsedAnswer& answer() const { return answer_; }
  bool in_reasoning() const { return state_ == State::kReasoning || state_ == State::kHeld; }

 private:
  enum class State {
    kReasoning,
    kHeld,        // a call inside thinking: counts if the thinking is never closed
    kHeldClosed,  // it was closed: counts if no content follows
    kContent,
    kCall,
    kAfterCall,  // </tool_call> may follow
  };

  void push(char c);
  void push_reasoning(char c);
  void push_held(char c);
  void push_content(char c);
  void push_call(char c);
  void push_after_call(char c);

  bool calls_wanted() const { return style_.tools != ToolStyle::kNone && !tools_.empty(); }
  std::vector<std::string_view> tags() const;
  void take_tag(std::string_view tag);
  void begin_call(std::string_view tag);
  void reject_call();
  bool name_call();
  void end_call(CallReader::Status status);
  void close_call();

  void emit(OutputEvent::Kind kind, std::string_view text, int call = -1);
  void emit_reasoning(char c);
  void emit_content(char c);
  void flush_space();
  void release_held();
  void finish_held();
  void finish_call();

  const ChatStyle style_;
  const ToolSchemas tools_;
  const std::function<std::string()> new_id_;

  State state_;
  std::string pending_;   // may be the beginning of a tag
  std::string newlines_;  // of reasoning: dropped before </think>
  std::string space_;     // of content: dropped before a call
  std::string held_;
  LineContext line_;            // of what is read now
  bool skip_newlines_ = false;  // after </think>
  bool think_allowed_;          // only an answer's own first <think> opens reasoning

  std::unique_ptr<CallReader> reader_;
  std::string bytes_;     // of the call
  bool strong_ = false;   // it began a line
  bool wrapped_ = false;  // in <tool_call>
  bool named_ = false;
  bool in_reasoning_ = false;
  CallState call_state_ = CallState::kComplete;

  ParsedAnswer answer_;
  Events events_;
};

}  // namespace forebay
