// The standard's own examples, and any cut of the same bytes.
#include "core/sha256.h"

#include <string>

#include <gtest/gtest.h>

namespace forebay {
namespace {

std::string sum_of(std::string_view text) {
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

TEST(Sha256, StandardExamples) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreTheWhole) {
  for (size_t n = 0; n < 200; ++n) {
    const std::string text(n, 'x');
    for (const size_t cut : {n / 3, n / 2, n}) {
      Sha256Sum sum;
      sum.add(std::as_bytes(std::span(text)).first(cut));
      sum.add(std::as_bytes(std::span(text)).subspan(cut));
      EXPECT_EQ(to_hex(sum.finish()), sum_of(text)) << n << " " << cut;
    }
  }
}

}  // namespace
}  // namespace forebay
