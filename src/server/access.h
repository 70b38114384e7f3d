/// Who may ask: the key, and what browsers say about where a request comes from.
#pragma once

#include <string>
#include <string_view>

namespace forebay {

/// The time it takes depends on the lengths only.
bool equal_secrets(std::string_view a, std::string_view b);

/// Whether nothing but this machine reaches the address.
bool is_loopback(std::string_view host);

struct AccessRules {
  std::string api_key;      // empty: none is asked for
  std::string cors_origin;  // pages from here may ask; "*": from anywhere; empty: none but our own
  bool loopback_only = true;
};

/// What a request says about itself; absent headers are empty.
struct AccessClaims {
  std::string_view authorization;  // "Bearer KEY"
  std::string_view x_api_key;
  std::string_view origin;  // "http://host:port"
  std::string_view host;    // "host:port"
};

enum class Access { kGranted, kNoKey, kForeignPage, kForeignHost };
/// A page of another site can make a browser send requests to this machine; such are refused by their origin,
/// and on loopback also by the host name they used, which a page can rebind.
Access check_access(const AccessRules& rules, const AccessClaims& claims, bool needs_key);

}  // namespace forebay
