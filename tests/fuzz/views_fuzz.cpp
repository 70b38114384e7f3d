/// Any bytes as a table of log-probs: an error of one line, or a ledger whose terms add up.
#include <algorithm>

#include "fuzz.h"
#include "train/monitor/kl_ledger.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay::train;
  const auto views = parse_views({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!views) {
    FUZZ_ASSERT(std::none_of(views.error().message.begin(), views.error().message.end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
    return 0;
  }
  if (const auto ledger = make_ledger(*views)) {
    FUZZ_ASSERT(ledger->residual() <= 1e-6);
    FUZZ_ASSERT(!ledger_table(*ledger).empty() && !ledger_json(*ledger).empty());
  }
  return 0;
}

FuzzSeeds fuzz_seeds() {
  return {{"{\"view\":\"sampler\",\"log_probs\":[-1,-2.5,null]}\n{\"view\":\"boundary "
           "0\",\"log_probs\":[-2,-4,0]}\n"},
          {"\"view\"", "\"log_probs\"", "null", "[", "]", "-1e38", "\n", "{", "}"}};
}
