/// Files put together from a header text, for what the writer refuses to write.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "safetensors/safetensors.h"

namespace forebay::raw {

inline std::string file(std::string_view header, size_t n_data_bytes, uint64_t header_bytes) {
  return std::string(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes) +
         std::string(header) + std::string(n_data_bytes, '\x5a');
}
inline std::string file(std::string_view header, size_t n_data_bytes) {
  return file(header, n_data_bytes, header.size());
}

inline Result<std::vector<SafeTensor>> parse(std::string_view bytes,
                                             std::map<std::string, std::string>* metadata = nullptr) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes)), bytes.size(), metadata);
}

}  // namespace forebay::raw
