#include "cli/terminal.h"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace forebay::cli {

bool is_terminal(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1;
}

bool understands_escapes() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) continue;
    // U+0080 to U+009F, of which U+009B begins a sequence as ESC [ does.
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      ++i;
      continue;
    }
    out += static_cast<char>(c);
  }
  return out;
}

Writer::Writer(std::FILE* stream, Style style)
    : stream_(stream),
      to_terminal_(is_terminal(stream)),
      dim_(style == Style::kDim && to_terminal_ && understands_escapes()) {}

void Writer::write(std::string_view text) {
  const std::string shown = to_terminal_ ? without_controls(text) : std::string(text);
  if (shown.empty()) return;
  const size_t n_text = dim_ ? shown.find_last_not_of('\n') + 1 : 0;
  // Each piece by itself: the process may be stopped after any of them.
  if (n_text > 0) fmt::print(stream_, "\033[2m{}\033[0m", std::string_view(shown).substr(0, n_text));
  std::fwrite(shown.data() + n_text, 1, shown.size() - n_text, stream_);
  std::fflush(stream_);
  wrote_ = true;
  last_ = shown.back();
}

void Writer::end_line() {
  if (!at_line_start()) write("\n");
}

}  // namespace forebay::cli
