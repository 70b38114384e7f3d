/// Values for what can fail in the world (files, devices, networks, users);
/// bugs go to core/ensure.h. GCC 12 has no std::expected in C++20; the member
/// names here are the same.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace forebay {

enum class Code {
  kInvalidArgument,  // the caller asked for something that cannot be
  kNotFound,         // a file, tensor, key or name that is not there
  kCorrupt,          // bytes that contradict their format
  kUnsupported,      // valid, but not by this build or version
  kIo,               // the operating system said no
  kOutOfMemory,      // a budget or the machine is exhausted
  kCancelled,        // a stop was requested
  kInternal,         // a library below us failed in a way it should not
};

/// "corrupt", "not found", ...
std::string_view name_of(Code code);

/// A message names the thing, the value seen and the value wanted; one line.
struct Error {
  Code code;
  std::string message;

  /// The same error with "context: " in front of its message.
  Error in(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  void value() const {}

  Error& error() & { return error_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  bool failed_ = false;
  Error error_{Code::kInternal, {}};
};

}  // namespace forebay

/// The value of `expr` (a Result), or return its Error to our caller.
#define TRY(expr)                                                        \
  ({                                                                     \
    auto try_result_ = (expr);                                           \
    if (!try_result_.has_value()) return std::move(try_result_).error(); \
    std::move(try_result_).value();                                      \
  })
