#include "chat/output_parser.h"

#include <random>

namespace forebay {
namespace {

/// What was taken for a call and is none is read again from its second byte on, unless it is longer than
/// this.
constexpr size_t kMaxReread = 1024;

bool is_object(const std::string& json) {
  const size_t first = json.find_first_not_of(" \n\t\r");
  return first != std::string::npos && json[first] == '{' && nlohmann::json::accept(json);
}

}  // namespace

std::string_view name_of(CallState state) {
  switch (state) {
    case CallState::kComplete:
      return "complete";
    case CallState::kMalformed:
      return "malformed";
    case CallState::kCutOff:
      return "cut off";
  }
  return "unknown";
}

std::string random_call_id() {
  static constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device random;
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) id += kLetters[letter(random)];
  return id;
}

OutputParser::OutputParser(ChatStyle style, ToolSchemas tools, bool starts_in_reasoning,
                           std::function<std::string()> new_id)
    : style_(style),
      tools_(std::move(tools)),
      new_id_(std::move(new_id)),
      state_(starts_in_reasoning ? State::kReasoning : State::kContent),
      think_allowed_(!starts_in_reasoning) {}

OutputParser::Events OutputParser::feed(std::string_view text) {
  for (const char c : text) push(c);
  return std::exchange(events_, {});
}

void OutputParser::push(char c) {
  switch (state_) {
    case State::kReasoning:
      return push_reasoning(c);
    case State::kHeld:
    case State::kHeldClosed:
      return push_held(c);
    case State::kContent:
      return push_content(c);
    case State::kCall:
      return push_call(c);
    case State::kAfterCall:
      return push_after_call(c);
  }
}

void OutputParser::emit(OutputEvent::Kind kind, std::string_view text, int call) {
  using Kind = OutputEvent::Kind;
  if (kind == Kind::kReasoning) answer_.reasoning += text;
  if (kind == Kind::kContent) answer_.content += text;
  if (kind == Kind::kArguments) answer_.calls[call].arguments += text;
  const bool delta = kind != Kind::kCallBegin && kind != Kind::kCallEnd;
  if (delta && text.empty()) return;
  if (delta && !events_.empty() && events_.back().kind == kind && events_.back().call == call)
    events_.back().text += text;
  else
    events_.push_back({.kind = kind, .text = std::string(text), .call = call, .id = {}, .name = {}});
}

// Reasoning and content: plain text with tags in it.

std::vector<std::string_view> OutputParser::tags() const {
  std::vector<std::string_view> tags;
  const bool reasoning = state_ == State::kReasoning;
  if (reasoning) tags.push_back(kThinkClose);
  if (!reasoning && think_allowed_) tags.push_back(kThinkOpen);
  if (calls_wanted() && !line_.quoted()) {
    const bool start = line_.at_line_start();
    if (start || !reasoning) tags.push_back(kToolOpen);
    // Behind a <tool_call> that is text, so is this.
    const std::string& before = reasoning ? answer_.reasoning : answer_.content;
    if (start && style_.tools == ToolStyle::kXml && !before.ends_with(kToolOpen))
      tags.push_back(kFunctionOpen);
  }
  return tags;
}

void OutputParser::push_reasoning(char c) {
  push_content(c);
}

void OutputParser::push_content(char c) {
  pending_ += c;
  while (!pending_.empty()) {
    bool prefix = false;
    if (pending_[0] == '<') {
      for (const std::string_view tag : tags()) {
        const TagMatch match = match_tag(pending_, tag);
        if (match == TagMatch::kWhole) {
          pending_.clear();
          return take_tag(tag);
        }
        prefix |= match == TagMatch::kPrefix;
      }
    }
    if (prefix) return;
    const char first = pending_[0];
    pending_.erase(0, 1);
    if (state_ == State::kReasoning)
      emit_reasoning(first);
    else
      emit_content(first);
  }
}

void OutputParser::take_tag(std::string_view tag) {
  if (tag == kThinkClose) {
    newlines_.clear();
    state_ = State::kContent;
    skip_newlines_ = true;
    line_ = {};
  } else if (tag == kThinkOpen) {
    space_.clear();
    answer_.text.clear();
    state_ = State::kReasoning;
    think_allowed_ = false;
    skip_newlines_ = true;
    line_ = {};
  } else {
    begin_call(tag);
  }
}

void OutputParser::emit_reasoning(char c) {
  if (skip_newlines_ && c == '\n') return;
  skip_newlines_ = false;
  line_.push(c);
  if (c == '\n') {
    newlines_ += c;
    return;
  }
  emit(OutputEvent::Kind::kReasoning, newlines_);
  newlines_.clear();
  emit(OutputEvent::Kind::kReasoning, {&c, 1});
}

void OutputParser::emit_content(char c) {
  if (skip_newlines_ && c == '\n') return;
  skip_newlines_ = false;
  line_.push(c);
  answer_.text += c;
  if (is_json_space(c)) {
    space_ += c;
    return;
  }
  think_allowed_ = false;
  flush_space();
  emit(OutputEvent::Kind::kContent, {&c, 1});
}

void OutputParser::flush_space() {
  emit(OutputEvent::Kind::kContent, space_);
  space_.clear();
}

// Calls.

void OutputParser::begin_call(std::string_view tag) {
  in_reasoning_ = state_ == State::kReasoning;
  state_ = State::kCall;
  strong_ = line_.at_line_start();
  wrapped_ = tag == kToolOpen;
  named_ = false;
  skip_newlines_ = false;
  bytes_ = tag;
  reader_ = style_.tools == ToolStyle::kXml ? make_xml_call_reader(tools_) : make_json_call_reader();
  std::string none;
  if (!wrapped_)
    for (const char c : tag) reader_->push(c, none);
}

/// These bytes were no call: their first one is text, and the others may be anything.
void OutputParser::reject_call() {
  reader_.reset();
  state_ = in_reasoning_ ? State::kReasoning : State::kContent;
  const std::string text = std::exchange(bytes_, {});
  const auto emit_one = [&](char c) {
    if (in_reasoning_)
      emit_reasoning(c);
    else
      emit_content(c);
  };
  if (text.size() > kMaxReread) {
    for (const char c : text) emit_one(c);
    return;
  }
  emit_one(text[0]);
  for (const char c : std::string_view(text).substr(1)) push(c);
}

/// The name is known: whether this is a call that goes out now is decided here.
bool OutputParser::name_call() {
  const bool known = tools_.has(reader_->name());
  if (!known && (!strong_ || !wrapped_ || in_reasoning_)) {
    reject_call();
    return false;
  }
  named_ = true;
  if (in_reasoning_) {
    held_ = std::exchange(bytes_, {});
    reader_.reset();
    state_ = State::kHeld;
    return false;
  }
  // What was white space of content goes with the call.
  bytes_ = space_ + bytes_;
  answer_.text.resize(answer_.text.size() - space_.size());
  space_.clear();
  think_allowed_ = false;
  const int index = static_cast<int>(answer_.calls.size());
  answer_.calls.push_back(
      {.id = new_id_(), .name = reader_->name(), .arguments = {}, .bytes = {}, .state = CallState::kCutOff});
  emit(OutputEvent::Kind::kCallBegin, {}, index);
  events_.back().id = answer_.calls.back().id;
  events_.back().name = answer_.calls.back().name;
  return true;
}

void OutputParser::push_call(char c) {
  bytes_ += c;
  std::string arguments;
  const CallReader::Status status = reader_->push(c, arguments);
  if (status == CallReader::Status::kHead) return;
  if (status == CallReader::Status::kRejected) return reject_call();
  if (!named_ && !name_call()) return;
  emit(OutputEvent::Kind::kArguments, arguments, static_cast<int>(answer_.calls.size()) - 1);
  if (status != CallReader::Status::kBody) end_call(status);
}

void OutputParser::end_call(CallReader::Status status) {
  const bool object = is_object(answer_.calls.back().arguments);
  call_state_ = object ? CallState::kComplete : CallState::kMalformed;
  reader_.reset();
  if (status == CallReader::Status::kClosed) return close_call();
  pending_.clear();
  state_ = State::kAfterCall;
}

void OutputParser::close_call() {
  ParsedCall& call = answer_.calls.back();
  call.state = call_state_;
  call.bytes = std::exchange(bytes_, {});
  answer_.text += call.bytes;
  emit(OutputEvent::Kind::kCallEnd, call.bytes, static_cast<int>(answer_.calls.size()) - 1);
  events_.back().state = call_state_;
  line_ = {};
  pending_.clear();
  state_ = State::kContent;
}

void OutputParser::push_after_call(char c) {
  pending_ += c;
  size_t start = 0;
  // A brace too many is a common slip.
  while (start < pending_.size() &&
         (is_json_space(pending_[start]) || (style_.tools == ToolStyle::kJson && pending_[start] == '}')))
    ++start;
  const std::string_view rest = std::string_view(pending_).substr(start);
  const TagMatch match = start > kMaxGap ? TagMatch::kNo : match_tag(rest, kToolClose);
  if (match == TagMatch::kPrefix) return;
  const std::string text = std::exchange(pending_, {});
  if (match == TagMatch::kWhole) {
    bytes_ += text;
    return close_call();
  }
  close_call();
  for (const char one : text) push(one);
}

// A call inside thinking.

void OutputParser::push_held(char c) {
  held_ += c;
  if (state_ == State::kHeldClosed) {
    if (is_json_space(c)) return;
    return release_held();
  }
  if (c == '>' && held_.ends_with(kThinkClose)) state_ = State::kHeldClosed;
}

/// The thinking was closed and an answer follows: the calls in it were thoughts.
void OutputParser::release_held() {
  const std::string held = std::exchange(held_, {});
  const size_t close = held.find(kThinkClose);
  state_ = State::kReasoning;
  for (const char c : std::string_view(held).substr(0, close)) emit_reasoning(c);
  take_tag(kThinkClose);
  for (const char c : std::string_view(held).substr(close + kThinkClose.size())) push(c);
}

/// Nothing followed: the calls count, what is around them is reasoning.
void OutputParser::finish_held() {
  if (state_ == State::kHeldClosed) held_.resize(held_.find(kThinkClose));
  OutputParser inner(style_, tools_, /*starts_in_reasoning=*/false, new_id_);
  Events events = inner.feed(held_);
  for (OutputEvent& event : inner.finish()) events.push_back(std::move(event));
  held_.clear();
  answer_.call_in_reasoning = true;
  newlines_.clear();
  for (OutputEvent& event : events) {
    if (event.kind == OutputEvent::Kind::kContent || event.kind == OutputEvent::Kind::kReasoning)
      emit(OutputEvent::Kind::kReasoning, event.text);
    else
      events_.push_back(std::move(event));
  }
  answer_.calls = inner.answer().calls;
}

// The end.

void OutputParser::finish_call() {
  std::string arguments;
  const CallReader::Status status = reader_->finish(arguments);
  if (!named_) {
    // No tag is looked for any more.
    const std::string text = std::exchange(bytes_, {});
    state_ = in_reasoning_ ? State::kReasoning : State::kContent;
    for (const char c : text) {
      if (in_reasoning_)
        emit_reasoning(c);
      else
        emit_content(c);
    }
    return;
  }
  emit(OutputEvent::Kind::kArguments, arguments, static_cast<int>(answer_.calls.size()) - 1);
  if (status == CallReader::Status::kBody) {
    call_state_ = CallState::kCutOff;
    return close_call();
  }
  end_call(status);
}

OutputParser::Events OutputParser::finish() {
  if (state_ == State::kCall) finish_call();
  if (state_ == State::kAfterCall) {
    // White space or half a closing tag.
    bytes_ += std::exchange(pending_, {});
    close_call();
  }
  if (state_ == State::kHeld || state_ == State::kHeldClosed) finish_held();
  for (const char c : std::exchange(pending_, {})) {
    if (state_ == State::kReasoning)
      emit_reasoning(c);
    else
      emit_content(c);
  }
  if (state_ == State::kReasoning) emit(OutputEvent::Kind::kReasoning, std::exchange(newlines_, {}));
  if (state_ == State::kContent && answer_.calls.empty()) flush_space();
  return std::exchange(events_, {});
}

}  // namespace forebay
