/// Pages of 2 MiB for anonymous memory: fewer page walks for who reads weights in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

/// Whether the system gives such pages to who asks (/sys/kernel/mm/transparent_hugepage).
bool huge_pages_exist();

/// Asks for them where `bytes`, untouched anonymous memory, hold whole ones. What the system does not have it
/// does not give.
void ask_for_huge_pages(std::span<std::byte> bytes);

/// What is not of them yet will not be.
void decline_huge_pages(std::span<std::byte> bytes);

/// Anonymous memory becomes zeros, and its pages the system's again.
void give_pages_back(std::span<std::byte> bytes);

}  // namespace forebay
