// Stands in for nfc.cpp where utf8proc is absent: nothing can be created.
#include "core/ensure.h"
#include "tokenizer/nfc.h"

namespace forebay {

Result<NfcNormalizer> NfcNormalizer::create() {
  return Error{Code::kUnsupported, "no normalisation to NFC: built without utf8proc"};
}

std::string_view NfcNormalizer::normalize(std::string_view, std::string&) const {
  ENSURE(false, "a normalizer cannot exist without utf8proc");
}

}  // namespace forebay
