#include "train/grpo/tied_copies.h"

#include <map>
#include <sstream>

#include <fmt/format.h>

#include "train/grpo/run_file.h"

namespace forebay::train {
namespace {

bool is_of(std::string_view name, std::string_view parameter) {
  return name == parameter || (name.ends_with(parameter) && name[name.size() - parameter.size() - 1] == '.');
}

}  // namespace

NamedTensors without_copies(NamedTensors tensors, const Net& net) {
  const std::string tied = net.tied_parameter();
  if (net.is_copy(tied)) std::erase_if(tensors, [&](const auto& entry) { return is_of(entry.first, tied); });
  return tensors;
}

Result<void> check_copies(const NamedTensors& mine, const Net& net, Team& team) {
  const std::string tied = net.tied_parameter();
  if (tied.empty() || team.size() == 1) return {};
  std::string sums;
  if (net.span().has_embedding || net.span().has_head)
    for (const auto& [name, tensor] : mine)
      if (is_of(name, tied)) sums += fmt::format("{} {:016x}\n", name, tensors_hash({{name, tensor}}));
  const std::vector<Bytes> all = TRY(team.bring(Bytes(sums.begin(), sums.end())));
  std::map<std::string, std::string> first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream lines(std::string(all[rank].begin(), all[rank].end()));
    for (std::string name, sum; lines >> name >> sum;) {
      const auto [at, is_first] = first.try_emplace(name, sum);
      if (!is_first && at->second != sum)
        return Error{Code::kInternal,
                     fmt::format("{} at rank {} has hash {}, at rank 0 {}: embedding and head are one "
                                 "parameter and must learn alike; give both stages devices of one kind",
                                 name, rank, sum, at->second)};
    }
  }
  return {};
}

}  // namespace forebay::train
