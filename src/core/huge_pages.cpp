#include "core/huge_pages.h"

#include <fstream>
#include <string>

#include <sys/mman.h>

namespace forebay {

bool huge_pages_exist() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  return std::getline(file, line) && line.find("[never]") == std::string::npos;
}

void ask_for_huge_pages(std::span<std::byte> bytes) {
#ifdef MADV_HUGEPAGE
  if (!bytes.empty()) ::madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);
#endif
}

void decline_huge_pages(std::span<std::byte> bytes) {
#ifdef MADV_NOHUGEPAGE
  if (!bytes.empty()) ::madvise(bytes.data(), bytes.size(), MADV_NOHUGEPAGE);
#endif
}

void give_pages_back(std::span<std::byte> bytes) {
  if (!bytes.empty()) ::madvise(bytes.data(), bytes.size(), MADV_DONTNEED);
}

}  // namespace forebay
