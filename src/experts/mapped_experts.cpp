#include "experts/mapped_experts.h"

#include "core/ensure.h"

namespace forebay {

Result<ExpertLease> MappedExperts::request(int block, std::span<const int32_t> experts) {
  ENSURE(leased_.empty(), "one lease at a time");
  const ExpertPlanes& planes = blocks_[block];
  for (int32_t e : experts)
    leased_.push_back({e, planes.gate.expert(e), planes.up.expert(e), planes.down.expert(e)});
  taken_ = false;
  return ExpertLease(*this);
}

Result<std::span<const ResidentExpert>> MappedExperts::take_ready() {
  if (std::exchange(taken_, true)) return std::span<const ResidentExpert>();
  return std::span<const ResidentExpert>(leased_);
}

}  // namespace forebay
