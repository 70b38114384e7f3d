#include "train/tasks/draws.h"

namespace forebay::train {

uint64_t text_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix(hash);
}

bool is_held_out(std::string_view content) {
  return text_hash(content) % 5 == 0;
}

}  // namespace forebay::train
