/// Numbers as people read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace forebay {

/// "512 B", "1.23 GiB": three digits, powers of 1024.
std::string human_bytes(uint64_t bytes);
/// "950", "12.3 k", "1.23 G": three digits, powers of 1000.
std::string human_count(uint64_t count);
/// "1,234,567".
std::string grouped_digits(uint64_t number);
/// "850 ms", "12.3 s", "3 min 20 s", "2 h 05 min".
std::string human_duration(std::chrono::duration<double> duration);

}  // namespace forebay
