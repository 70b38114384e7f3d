// <function=NAME> <parameter=KEY> VALUE </parameter> ... </function>, the values typed by the tool's schema.
#include <set>

#include "chat/call_reader.h"
#include "chat/chat_style.h"
#include "chat/parameter_value.h"

namespace forebay {
namespace {

/// How the end of a parameter's value begins, if it does: the closing tag counts only when what follows it
/// belongs to a call, so that a value may contain one.
struct ValueEnd {
  enum class Kind { kNone, kMaybe, kParameter, kFunction };
  Kind kind = Kind::kNone;
  size_t next = 0;  // where the tag after </parameter> begins
};

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && is_json_space(text[at])) ++at;
  return at;
}

ValueEnd match_value_end(std::string_view tail) {
  using Kind = ValueEnd::Kind;
  const size_t start = tail[0] == '\n' ? 1 : 0;
  const std::string_view from_tag = tail.substr(start);
  if (from_tag.empty()) return {Kind::kMaybe};

  const auto tag = from_tag.substr(0, kParameterClose.size());
  if (match_tag(tag, kParameterClose) == TagMatch::kPrefix) return {Kind::kMaybe};
  if (tag == kParameterClose) {
    const size_t next = skip_space(from_tag, tag.size());
    if (next - tag.size() > kMaxGap) return {};
    const std::string_view after = from_tag.substr(next);
    if (after.empty()) return {Kind::kMaybe};
    for (const std::string_view follower : {kParameterOpen, kFunctionClose, kToolClose}) {
      const TagMatch match = match_tag(after, follower);
      if (match == TagMatch::kPrefix) return {Kind::kMaybe};
      if (match == TagMatch::kWhole) return {Kind::kParameter, start + next};
    }
    return {};
  }
  // </function></tool_call> without </parameter>: the end only when the answer ends there.
  const auto function = from_tag.substr(0, kFunctionClose.size());
  if (match_tag(function, kFunctionClose) == TagMatch::kPrefix) return {Kind::kMaybe};
  if (function != kFunctionClose) return {};
  const size_t next = skip_space(from_tag, function.size());
  if (next - function.size() > kMaxGap) return {};
  const std::string_view after = from_tag.substr(next);
  if (after.size() < kToolClose.size()) return {kToolClose.starts_with(after) ? Kind::kMaybe : Kind::kNone};
  if (!after.starts_with(kToolClose)) return {};
  const size_t end = skip_space(after, kToolClose.size());
  return {end == after.size() && end - kToolClose.size() <= kMaxGap ? Kind::kFunction : Kind::kNone};
}

class XmlCallReader : public CallReader {
 public:
  explicit XmlCallReader(const ToolSchemas& tools) : tools_(tools) {}

  Status push(char c, std::string& arguments) override {
    held_ += c;
    while (!held_.empty()) {
      const size_t before = held_.size();
      const State state = state_;
      if (!step(arguments)) break;
      if (held_.size() == before && state_ == state) break;
    }
    return status_;
  }

  Status finish(std::string& arguments) override {
    if (status_ != Status::kBody) return status_ == Status::kHead ? Status::kRejected : status_;
    if (state_ == State::kValue && !held_.empty() &&
        match_value_end(held_).kind == ValueEnd::Kind::kFunction) {
      malformed_ = true;
      end_value(arguments);
      end_call(arguments);
    }
    return status_;
  }

 private:
  enum class State { kOpen, kName, kBetween, kKey, kValueStart, kValue, kOver };

  /// Takes what it can from held_; false: more bytes are needed.
  bool step(std::string& arguments) {
    switch (state_) {
      case State::kOpen:
        return open();
      case State::kName:
        return read_name();
      case State::kBetween:
        return between(arguments);
      case State::kKey:
        return read_key(arguments);
      case State::kValueStart:
        if (held_[0] == '\n') held_.erase(0, 1);
        state_ = State::kValue;
        return true;
      case State::kValue:
        return read_value(arguments);
      case State::kOver:
        return false;
    }
    return false;
  }

  bool reject() {
    status_ = Status::kRejected;
    state_ = State::kOver;
    return false;
  }

  bool open() {
    const size_t start = skip_space(held_, 0);
    if (start > kMaxGap) return reject();
    switch (match_tag(std::string_view(held_).substr(start), kFunctionOpen)) {
      case TagMatch::kNo:
        return reject();
      case TagMatch::kPrefix:
        return false;
      case TagMatch::kWhole:
        held_.clear();
        state_ = State::kName;
        return true;
    }
    return false;
  }

  bool read_name() {
    const char c = held_[0];
    held_.erase(0, 1);
    if (c == '>') {
      if (name_.empty()) return reject();
      status_ = Status::kBody;
      state_ = State::kBetween;
      return true;
    }
    if (c == '<' || c == '\n' || name_.size() == kMaxName) return reject();
    name_ += c;
    return true;
  }

  /// Between parameters only tags count; other text is dropped.
  bool between(std::string& arguments) {
    if (held_[0] == '<') {
      const TagMatch parameter = match_tag(held_, kParameterOpen);
      if (parameter == TagMatch::kWhole) {
        held_.clear();
        key_.clear();
        state_ = State::kKey;
        return true;
      }
      const TagMatch function = match_tag(held_, kFunctionClose);
      const TagMatch tool = match_tag(held_, kToolClose);
      if (function == TagMatch::kWhole || tool == TagMatch::kWhole) {
        held_.clear();
        end_call(arguments);
        if (tool == TagMatch::kWhole) {
          malformed_ = true;
          status_ = Status::kClosed;
        }
        return false;
      }
      if (parameter == TagMatch::kPrefix || function == TagMatch::kPrefix || tool == TagMatch::kPrefix)
        return false;
    }
    if (!is_json_space(held_[0])) malformed_ = true;
    held_.erase(0, 1);
    return true;
  }

  bool read_key(std::string& arguments) {
    const char c = held_[0];
    held_.erase(0, 1);
    if (c == '>') {
      begin_value(arguments);
      state_ = State::kValueStart;
      return true;
    }
    if (c == '\n' || key_.size() == kMaxName) {
      // No key: what follows is dropped up to the next tag.
      malformed_ = true;
      state_ = State::kBetween;
      return true;
    }
    key_ += c;
    return true;
  }

  void begin_value(std::string& arguments) {
    types_ = tools_.types_of(name_, key_);
    value_.clear();
    plain_ = is_plain_string(types_);
    repeated_ = !keys_.insert(key_).second;
    if (repeated_) {
      malformed_ = true;  // the first one has gone out
      return;
    }
    arguments += keys_.size() == 1 ? "{\"" : ", \"";
    append_escaped(arguments, key_);
    arguments += plain_ ? "\": \"" : "\": ";
  }

  void take_value(std::string_view text, std::string& arguments) {
    if (repeated_) return;
    if (plain_)
      append_escaped(arguments, text);
    else
      value_ += text;
  }

  void end_value(std::string& arguments) {
    if (repeated_) return;
    if (plain_) {
      arguments += '"';
      return;
    }
    const ParameterValue value = parameter_value(value_, types_);
    if (!value.fits) malformed_ = true;
    arguments += value.json;
  }

  bool read_value(std::string& arguments) {
    if (held_[0] != '\n' && held_[0] != '<') {
      take_value({held_.data(), 1}, arguments);
      held_.erase(0, 1);
      return true;
    }
    const ValueEnd end = match_value_end(held_);
    switch (end.kind) {
      case ValueEnd::Kind::kNone:
        take_value({held_.data(), 1}, arguments);
        held_.erase(0, 1);
        return true;
      case ValueEnd::Kind::kMaybe:
      case ValueEnd::Kind::kFunction:
        return false;
      case ValueEnd::Kind::kParameter:
        end_value(arguments);
        held_.erase(0, end.next);
        state_ = State::kBetween;
        return true;
    }
    return false;
  }

  void end_call(std::string& arguments) {
    arguments += keys_.empty() ? "{}" : "}";
    status_ = Status::kEnded;
    state_ = State::kOver;
  }

  const ToolSchemas& tools_;
  State state_ = State::kOpen;
  Status status_ = Status::kHead;
  std::string held_;  // bytes that are not decided yet
  std::string key_;
  std::string value_;  // of the parameter, unless it goes out as it comes
  AllowedTypes types_;
  bool plain_ = false;
  bool repeated_ = false;
  std::set<std::string> keys_;
};

}  // namespace

std::unique_ptr<CallReader> make_xml_call_reader(const ToolSchemas& tools) {
  return std::make_unique<XmlCallReader>(tools);
}

}  // namespace forebay
