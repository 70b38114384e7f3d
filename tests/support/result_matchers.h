/// ASSERT_OK(result) and friends: a failing one prints the error.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "forebay/result.h"

namespace forebay {

template <typename T>
::testing::AssertionResult is_ok(const Result<T>& result) {
  if (result.has_value()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << name_of(result.error().code) << ": " << result.error().message;
}

/// An error of this code whose one-line message contains every part.
template <typename T, typename... Parts>
::testing::AssertionResult fails_with(const Result<T>& result, Code code, Parts... parts) {
  if (result.has_value()) return ::testing::AssertionFailure() << "no error, wanted " << name_of(code);
  const Error& error = result.error();
  const auto failure = [&] {
    return ::testing::AssertionFailure() << name_of(error.code) << ": " << error.message << " - wanted ";
  };
  if (error.code != code) return failure() << name_of(code);
  if (error.message.find('\n') != std::string::npos) return failure() << "one line";
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...})
    if (error.message.find(part) == std::string::npos) return failure() << "'" << part << "' in the message";
  return ::testing::AssertionSuccess();
}

}  // namespace forebay

#define ASSERT_OK(result) ASSERT_TRUE(::forebay::is_ok(result))
#define EXPECT_OK(result) EXPECT_TRUE(::forebay::is_ok(result))
