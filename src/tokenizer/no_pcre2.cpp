// Stands in for pre_tokenizer.cpp where PCRE2 is absent: nothing can be created.
#include "core/ensure.h"
#include "tokenizer/pre_tokenizer.h"

namespace forebay {

struct PreTokenizer::Impl {};

PreTokenizer::PreTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerRules&) {
  return Error{Code::kUnsupported, "no tokenizer: built without PCRE2"};
}

void PreTokenizer::split(std::string_view, FunctionRef<void(std::string_view)>) const {
  ENSURE(false, "a pre-tokenizer cannot exist without PCRE2");
}

}  // namespace forebay
