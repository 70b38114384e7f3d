#include "tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <new>
#include <vector>

#include <fmt/format.h>
#include <pcre2.h>

#include "core/ensure.h"

namespace forebay {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Code_ptr = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;

std::string pcre2_message(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct Pattern {
  Code_ptr code;
  bool jit = false;

  static Result<Pattern> compile(std::string_view source) {
    std::string exact = to_pcre2_pattern(source);
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pattern pattern;
    pattern.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(exact.data()), exact.size(),
                                     PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
    if (!pattern.code)
      return Error{Code::kInternal,
                   fmt::format("PCRE2 refuses the pre-tokenizer pattern at offset {} of {}: {}", offset,
                               exact.size(), pcre2_message(error))};
    // Fails where PCRE2 was built without JIT or memory may not be executable: then it interprets.
    pattern.jit = pcre2_jit_compile(pattern.code.get(), PCRE2_JIT_COMPLETE) == 0;
    return pattern;
  }

  /// Finds the next match at or after `from`; its bounds are then in `match`.
  bool find(std::string_view text, size_t from, pcre2_match_data* match) const {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int n = PCRE2_ERROR_JIT_STACKLIMIT;
    if (jit) n = pcre2_jit_match(code.get(), subject, text.size(), from, 0, match, nullptr);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
      n = pcre2_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match,
                      nullptr);
    if (n == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    ENSURE(n >= 0 || n == PCRE2_ERROR_NOMATCH, fmt::format("pre-tokenizer pattern: {}", pcre2_message(n)));
    return n >= 0;
  }
};

MatchData make_match_data() {
  MatchData match(pcre2_match_data_create(1, nullptr));
  if (!match) throw std::bad_alloc();
  return match;
}

}  // namespace

struct PreTokenizer::Impl {
  std::vector<Pattern> patterns;

  void split(std::string_view text, size_t step, FunctionRef<void(std::string_view)> piece) const {
    if (step == patterns.size()) {
      piece(text);
      return;
    }
    MatchData match = make_match_data();
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    size_t done = 0;  // all before it was handed out
    while (done < text.size() && patterns[step].find(text, done, match.get())) {
      size_t begin = bounds[0], end = bounds[1];
      ENSURE(end > begin, "a pre-tokenizer pattern matches nothing at all");
      if (begin > done) split(text.substr(done, begin - done), step + 1, piece);
      split(text.substr(begin, end - begin), step + 1, piece);
      done = end;
    }
    if (done < text.size()) split(text.substr(done), step + 1, piece);
  }
};

PreTokenizer::PreTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerRules& rules) {
  auto impl = std::make_unique<Impl>();
  for (std::string_view source : rules.patterns) impl->patterns.push_back(TRY(Pattern::compile(source)));
  return PreTokenizer(std::move(impl));
}

void PreTokenizer::split(std::string_view text, FunctionRef<void(std::string_view)> piece) const {
  impl_->split(text, 0, piece);
}

}  // namespace forebay
