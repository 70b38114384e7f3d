/// How the interpreter stops. Thrown within tokenizer/ only: chat_template.cpp turns it into an Error.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

namespace forebay::jinja {

struct Failure {
  int line;  // 0: the line being evaluated, which the Runtime knows
  std::string reason;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{0, fmt::format(format, std::forward<Args>(args)...)};
}

template <typename... Args>
[[noreturn]] void fail_at(int line, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{line, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace forebay::jinja
