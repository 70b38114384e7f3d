// {"name": NAME, "arguments": {...}}: the arguments go out as they come, once the name is known.
#include <nlohmann/json.hpp>

#include "chat/call_reader.h"
#include "chat/chat_style.h"
#include "chat/parameter_value.h"

namespace forebay {
namespace {

/// Arguments that stand before the name are kept until it comes, at most these many bytes.
constexpr size_t kMaxEarlyArguments = 64 * 1024;

class JsonCallReader : public CallReader {
 public:
  Status push(char c, std::string& arguments) override {
    step(c, arguments);
    if (status_ == Status::kBody && !early_.empty()) {
      arguments += early_;
      early_.clear();
    }
    return status_;
  }

  Status finish(std::string& arguments) override {
    if (status_ == Status::kHead) return Status::kRejected;
    // Only the outer brace is missing.
    if (status_ == Status::kBody && state_ == State::kNext && has_arguments_) end(arguments);
    return status_;
  }

 private:
  enum class State { kOpen, kKeyStart, kKey, kColon, kValueStart, kName, kValue, kNext, kBroken, kOver };
  enum class Member { kName, kArguments, kOther };

  void reject_or_break() {
    malformed_ = true;
    state_ = State::kBroken;
    tag_.clear();
    if (status_ == Status::kHead) {
      status_ = Status::kRejected;
      state_ = State::kOver;
    }
  }

  void step(char c, std::string& arguments) {
    switch (state_) {
      case State::kOpen:
        if (is_json_space(c) && ++gap_ <= kMaxGap) return;
        if (c != '{') return reject_or_break();
        state_ = State::kKeyStart;
        return;
      case State::kKeyStart:
        if (is_json_space(c)) return;
        if (c == '}') return end(arguments);
        if (c != '"') return reject_or_break();
        text_.clear();
        state_ = State::kKey;
        return;
      case State::kKey:
        if (!take_string(c)) return;
        return begin_member();
      case State::kColon:
        if (is_json_space(c)) return;
        if (c != ':') return reject_or_break();
        state_ = State::kValueStart;
        return;
      case State::kValueStart:
        if (is_json_space(c)) return;
        return begin_value(c, arguments);
      case State::kName:
        if (!take_string(c)) return;
        return take_name();
      case State::kValue:
        return take_value(c, arguments);
      case State::kNext:
        if (is_json_space(c)) return;
        if (c == ',') {
          state_ = State::kKeyStart;
        } else if (c == '}') {
          end(arguments);
        } else {
          reject_or_break();
          if (state_ == State::kBroken) take_broken(c, arguments);
        }
        return;
      case State::kBroken:
        return take_broken(c, arguments);
      case State::kOver:
        return;
    }
  }

  /// Adds to text_; true at the closing quote.
  bool take_string(char c) {
    if (!escaped_ && c == '"') return true;
    escaped_ = !escaped_ && c == '\\';
    text_ += c;
    if (text_.size() > 4 * kMaxName) reject_or_break();
    return false;
  }

  void begin_member() {
    const std::string key = std::exchange(text_, {});
    member_ = key == "name"                               ? Member::kName
              : key == "arguments" || key == "parameters" ? Member::kArguments
                                                          : Member::kOther;
    state_ = State::kColon;
    // A quoted object with other members is no call.
    if (status_ == Status::kHead && member_ == Member::kOther && key != "id" && key != "type")
      reject_or_break();
    if (member_ == Member::kArguments && has_arguments_) reject_or_break();
  }

  void begin_value(char c, std::string& arguments) {
    if (member_ == Member::kName) {
      if (c != '"' || status_ == Status::kBody) return reject_or_break();
      state_ = State::kName;
      return;
    }
    if (member_ == Member::kArguments) has_arguments_ = true;
    depth_ = 0;
    in_string_ = escaped_ = false;
    // Arguments may be a string that holds the object.
    quoted_ = member_ == Member::kArguments && c == '"';
    text_.clear();
    state_ = State::kValue;
    if (member_ == Member::kArguments && c != '{' && c != '"') {
      malformed_ = true;
      if (c == ',' || c == '}') return reject_or_break();
    }
    take_value(c, arguments);
  }

  void take_name() {
    const nlohmann::json name = nlohmann::json::parse('"' + text_ + '"', nullptr, false);
    text_.clear();
    if (!name.is_string() || name.get_ref<const std::string&>().empty() ||
        name.get_ref<const std::string&>().size() > kMaxName)
      return reject_or_break();
    name_ = name.get<std::string>();
    status_ = Status::kBody;
    state_ = State::kNext;
  }

  void emit(std::string_view text, std::string& arguments) {
    if (member_ != Member::kArguments) return;
    if (quoted_) {
      text_ += text;
    } else if (status_ == Status::kBody) {
      arguments += text;
    } else {
      early_ += text;
      if (early_.size() > kMaxEarlyArguments) reject_or_break();
    }
  }

  void take_value(char c, std::string& arguments) {
    if (in_string_) {
      if (static_cast<unsigned char>(c) < 0x20) {
        // Not JSON, but there is one thing that it can mean.
        std::string fixed;
        append_escaped(fixed, {&c, 1});
        emit(fixed, arguments);
        escaped_ = false;
        return;
      }
      emit({&c, 1}, arguments);
      if (!escaped_ && c == '"') {
        in_string_ = false;
        if (depth_ == 0) end_value(arguments);
      }
      escaped_ = !escaped_ && c == '\\';
      return;
    }
    if (c == '<') {  // never JSON: the closing tag, too early
      reject_or_break();
      if (state_ == State::kBroken) take_broken(c, arguments);
      return;
    }
    if (depth_ == 0 && (c == ',' || c == '}' || is_json_space(c))) {  // after a number or a word
      end_value(arguments);
      return step(c, arguments);
    }
    emit({&c, 1}, arguments);
    if (state_ != State::kValue) return;
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if ((c == '}' || c == ']') && --depth_ == 0) end_value(arguments);
  }

  void end_value(std::string& arguments) {
    state_ = State::kNext;
    if (!quoted_) return;
    quoted_ = false;
    const nlohmann::json inner = nlohmann::json::parse(text_, nullptr, false);
    const bool object = inner.is_string() && nlohmann::json::accept(inner.get_ref<const std::string&>());
    if (!object) malformed_ = true;
    emit(object ? inner.get_ref<const std::string&>() : std::string_view(text_), arguments);
    text_.clear();
  }

  void end(std::string& arguments) {
    if (status_ == Status::kHead) return reject_or_break();
    if (!has_arguments_) arguments += "{}";
    status_ = Status::kEnded;
    state_ = State::kOver;
  }

  /// Nothing counts any more but </tool_call>.
  void take_broken(char c, std::string&) {
    tag_ += c;
    while (!tag_.empty() && match_tag(tag_, kToolClose) == TagMatch::kNo) tag_.erase(0, 1);
    if (tag_.size() != kToolClose.size()) return;
    status_ = Status::kClosed;
    state_ = State::kOver;
  }

  State state_ = State::kOpen;
  Status status_ = Status::kHead;
  Member member_ = Member::kOther;
  size_t gap_ = 0;
  std::string text_;   // of the string that is being read
  std::string early_;  // arguments before the name
  std::string tag_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool quoted_ = false;
  bool has_arguments_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_json_call_reader() {
  return std::make_unique<JsonCallReader>();
}

}  // namespace forebay
