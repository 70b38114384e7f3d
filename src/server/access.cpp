#include "server/access.h"

#include <algorithm>

namespace forebay {
namespace {

/// "host" of "host:port" and "[v6]:port".
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

std::string_view bearer(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  return authorization.starts_with(kScheme) ? authorization.substr(kScheme.size()) : std::string_view();
}

}  // namespace

bool equal_secrets(std::string_view a, std::string_view b) {
  const size_t n = std::max(a.size(), b.size());
  unsigned difference = a.size() != b.size();
  for (size_t i = 0; i < n; ++i) {
    const unsigned char x = i < a.size() ? static_cast<unsigned char>(a[i]) : 0;
    const unsigned char y = i < b.size() ? static_cast<unsigned char>(b[i]) : 0;
    difference |= static_cast<unsigned>(x ^ y);
  }
  return difference == 0;
}

bool is_loopback(std::string_view host) {
  const bool digits = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "::1" || (digits && host.starts_with("127."));
}

Access check_access(const AccessRules& rules, const AccessClaims& claims, bool needs_key) {
  if (!claims.origin.empty() && rules.cors_origin != "*" && claims.origin != rules.cors_origin) {
    const size_t scheme = claims.origin.find("://");
    const bool ours = scheme != std::string_view::npos && claims.origin.substr(scheme + 3) == claims.host;
    if (!ours) return Access::kForeignPage;
  }
  if (rules.loopback_only && !claims.host.empty() && !is_loopback(host_name(claims.host)))
    return Access::kForeignHost;
  if (!needs_key || rules.api_key.empty()) return Access::kGranted;
  const bool known = equal_secrets(bearer(claims.authorization), rules.api_key) ||
                     equal_secrets(claims.x_api_key, rules.api_key);
  return known ? Access::kGranted : Access::kNoKey;
}

}  // namespace forebay
