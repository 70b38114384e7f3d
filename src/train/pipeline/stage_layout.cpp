#include "train/pipeline/stage_layout.h"

#include <map>
#include <sstream>

#include <fmt/format.h>

namespace forebay::train {
namespace {

std::string described(const Net& net) {
  const StageSpan& span = net.span();
  std::string text = fmt::format("{} {} {} {} {}\n", span.first_block, span.last_block,
                                 int{span.has_embedding}, int{span.has_head}, net.boundary_width());
  for (const auto& parameter : net.named_parameters()) text += parameter.key() + "\n";
  return text;
}

}  // namespace

Result<StageLayout> agree_on_layout(const Net& net, Comm& pipe) {
  const std::string mine = described(net);
  const std::vector<Bytes> all =
      TRY(pipe.control().gather("pipeline layout", Bytes(mine.begin(), mine.end())));
  StageLayout layout;
  std::map<std::string, std::vector<int>> holders;
  int64_t next_block = 0, width = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream text(std::string(all[rank].begin(), all[rank].end()));
    StageSpan span;
    int64_t own_width = 0;
    text >> span.first_block >> span.last_block >> span.has_embedding >> span.has_head >> own_width;
    if (rank == 0) width = own_width;
    if (span.first_block != next_block || span.has_embedding != (rank == 0) ||
        span.has_head != (rank + 1 == all.size()) || own_width != width)
      return Error{
          Code::kInvalidArgument,
          fmt::format("stage {} of {} has blocks {} to {}, embedding {}, head {}, width {}: they begin "
                      "with block {}, the first has the embedding, the last the head, width {}",
                      rank, all.size(), span.first_block, span.last_block, span.has_embedding, span.has_head,
                      own_width, next_block, width)};
    next_block = span.last_block;
    layout.names.emplace_back();
    std::string name;
    std::getline(text, name);  // the rest of the first line
    while (std::getline(text, name)) {
      layout.names.back().push_back(name);
      holders[name].push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [name, ranks] : holders)
    if (ranks.size() > 1) layout.shared.push_back({name, ranks});
  return layout;
}

}  // namespace forebay::train
