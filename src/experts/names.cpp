#include <iterator>

#include "forebay/experts.h"

namespace forebay {
namespace {

template <typename T>
struct Named {
  T value;
  std::string_view name;
};
constexpr Named<ExpertPlacement> kPlacements[] = {{ExpertPlacement::kMapped, "mmap"},
                                                  {ExpertPlacement::kResident, "resident"},
                                                  {ExpertPlacement::kStreamed, "stream"}};
constexpr Named<EvictionPolicy> kPolicies[] = {{EvictionPolicy::kDecay, "decay"},
                                               {EvictionPolicy::kLru, "lru"},
                                               {EvictionPolicy::kLfu, "lfu"},
                                               {EvictionPolicy::kEma, "ema"},
                                               {EvictionPolicy::kNearPick, "near-pick"},
                                               {EvictionPolicy::kInverse, "inverse"}};

template <typename T, size_t N>
std::string_view name_in(const Named<T> (&table)[N], T value) {
  for (const Named<T>& entry : table)
    if (entry.value == value) return entry.name;
  return "unknown";
}

template <typename T, size_t N>
std::optional<T> value_in(const Named<T> (&table)[N], std::string_view name) {
  for (const Named<T>& entry : table)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ExpertPlacement placement) {
  return name_in(kPlacements, placement);
}
std::string_view name_of(EvictionPolicy policy) {
  return name_in(kPolicies, policy);
}
std::optional<ExpertPlacement> expert_placement_from_name(std::string_view name) {
  return value_in(kPlacements, name);
}
std::optional<EvictionPolicy> eviction_policy_from_name(std::string_view name) {
  return value_in(kPolicies, name);
}

}  // namespace forebay
