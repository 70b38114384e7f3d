#include "tokenizer/nfc.h"

#include <algorithm>
#include <new>

#include <utf8proc.h>

#include "core/ensure.h"
#include "tokenizer/utf8.h"

namespace forebay {
namespace {

constexpr uint32_t kCodePointEnd = 0x110000;
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
// No code point decomposes to more than four in Unicode 15; utf8proc would report it.
constexpr size_t kMaxDecomposed = 16;

int combining_class(int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

void append_decomposed(std::vector<int32_t>& out, uint32_t code_point) {
  size_t old_size = out.size();
  out.resize(old_size + kMaxDecomposed);
  utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<int32_t>(code_point), out.data() + old_size,
                                               kMaxDecomposed, UTF8PROC_DECOMPOSE, nullptr);
  ENSURE(n >= 0 && static_cast<size_t>(n) <= kMaxDecomposed, "utf8proc decomposes a character into too many");
  out.resize(old_size + static_cast<size_t>(n));
}

// Canonical order: marks between two starters sorted by class. (utf8proc's own ordering is quadratic, which a
// text of marks alone turns into minutes.)
void order_marks(std::vector<int32_t>& characters) {
  auto by_class = [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); };
  auto is_starter = [](int32_t c) { return combining_class(c) == 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if_not(begin, characters.end(), is_starter);
    auto end = std::find_if(begin, characters.end(), is_starter);
    if (!std::is_sorted(begin, end, by_class)) std::stable_sort(begin, end, by_class);
    begin = end;
  }
}

void compose(std::vector<int32_t>& characters) {
  utf8proc_ssize_t n =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), kCompose);
  ENSURE(n >= 0, "utf8proc fails to compose");
  characters.resize(static_cast<size_t>(n));
}

void append_normalized(std::string& out, std::string_view text, std::vector<int32_t>& scratch) {
  scratch.clear();
  while (!text.empty()) {
    utf8::Char c = utf8::first_char(text);
    append_decomposed(scratch, c.code_point);
    text.remove_prefix(c.n_bytes);
  }
  order_marks(scratch);
  compose(scratch);
  for (int32_t c : scratch) utf8::append(out, static_cast<uint32_t>(c));
}

}  // namespace

Result<NfcNormalizer> NfcNormalizer::create() {
  NfcNormalizer nfc;
  nfc.active_.resize(kCodePointEnd / 64);
  auto activate = [&](uint32_t code_point) {
    nfc.active_[code_point / 64] |= uint64_t{1} << code_point % 64;
  };

  std::vector<int32_t> parts, whole;
  for (uint32_t code_point = 0; code_point < kCodePointEnd; ++code_point) {
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<int32_t>(code_point));
    if (property->combining_class != 0) activate(code_point);
    bool decomposes = property->decomp_type == 0 && property->decomp_seqindex != UINT16_MAX;
    if (!decomposes) continue;
    parts.clear();
    append_decomposed(parts, code_point);
    for (size_t i = 1; i < parts.size(); ++i) activate(static_cast<uint32_t>(parts[i]));
    whole = parts;
    compose(whole);
    if (whole.size() != 1 || whole[0] != static_cast<int32_t>(code_point)) activate(code_point);
  }
  // Hangul syllables compose by rule, not by table: vowels and final consonants join what is before them.
  for (uint32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) activate(vowel);
  for (uint32_t final_consonant = 0x11A8; final_consonant <= 0x11C2; ++final_consonant)
    activate(final_consonant);
  return nfc;
}

std::string_view NfcNormalizer::normalize(std::string_view text, std::string& buffer) const {
  constexpr uint8_t kLeadOf300 = 0xCC;  // below U+0300 nothing is active
  std::vector<int32_t> scratch;
  bool changed = false;
  size_t copied = 0;   // text before it is in the buffer, once `changed`
  size_t stretch = 0;  // where the last character that is not active begins
  for (size_t at = 0; at < text.size();) {
    auto byte = static_cast<uint8_t>(text[at]);
    if (byte < kLeadOf300) {
      stretch = at;
      at += byte < 0x80 ? 1 : 2;
      continue;
    }
    utf8::Char c = utf8::first_char(text.substr(at));
    if (!is_active(c.code_point)) {
      stretch = at;
      at += c.n_bytes;
      continue;
    }
    size_t end = at + c.n_bytes;
    while (end < text.size()) {
      utf8::Char next = utf8::first_char(text.substr(end));
      if (!is_active(next.code_point)) break;
      end += next.n_bytes;
    }
    if (!changed) buffer.clear();
    changed = true;
    buffer.append(text.substr(copied, stretch - copied));
    append_normalized(buffer, text.substr(stretch, end - stretch), scratch);
    copied = stretch = at = end;
  }
  if (!changed) return text;
  buffer.append(text.substr(copied));
  return buffer;
}

}  // namespace forebay
