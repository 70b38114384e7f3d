#include "experts/mapped_experts.h"

namespace forebay {
namespace {

class Lease : public ExpertLease::Impl {
 public:
  explicit Lease(std::vector<ResidentExpert> experts) : experts_(std::move(experts)) {}
  Result<std::vector<ResidentExpert>> take_ready() override { return std::exchange(experts_, {}); }

 private:
  std::vector<ResidentExpert> experts_;
};

}  // namespace

Result<ExpertLease> MappedExperts::request(int block, std::span<const int32_t> experts) {
  const ExpertPlanes& planes = blocks_[block];
  std::vector<ResidentExpert> resident;
  for (int32_t e : experts)
    resident.push_back({e, planes.gate.expert(e), planes.up.expert(e), planes.down.expert(e)});
  return ExpertLease(std::make_unique<Lease>(std::move(resident)));
}

}  // namespace forebay
