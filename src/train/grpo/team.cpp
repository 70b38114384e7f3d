#include "train/grpo/team.h"

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "train/comm/tensors.h"

namespace forebay::train {
namespace {

constexpr uint64_t kTag = uint64_t{7} << 61;  // apart from those of the pipeline

Bytes text_bytes(const std::vector<std::string>& lines) {
  Bytes bytes;
  for (const std::string& line : lines) {
    bytes.insert(bytes.end(), line.begin(), line.end());
    bytes.push_back('\n');
  }
  return bytes;
}

std::vector<std::string> lines_of(const Bytes& bytes) {
  std::vector<std::string> lines;
  std::string line;
  for (const uint8_t byte : bytes) {
    if (byte != '\n') {
      line.push_back(static_cast<char>(byte));
      continue;
    }
    lines.push_back(std::exchange(line, {}));
  }
  return lines;
}

}  // namespace

Result<std::unique_ptr<Team>> Team::meet(const World& world, const CommOptions& options) {
  auto team = std::make_unique<Team>();
  if (world.size > 1) team->circuits_.emplace(TRY(connect_circuits(world, options)));
  return team;
}

Result<bool> Team::any(std::string_view question, bool mine) {
  if (!circuits_) return mine;
  const std::vector<Bytes> all = TRY(circuits_->control->gather(question, {static_cast<uint8_t>(mine)}));
  for (const Bytes& one : all)
    if (!one.empty() && one[0] != 0) return true;
  return false;
}

Result<Bytes> Team::share(Bytes bytes, int root) {
  if (!circuits_) return bytes;
  std::array<uint8_t, 8> size = {};
  const uint64_t n = bytes.size();
  std::memcpy(size.data(), &n, sizeof(n));
  TRY(anchor()->broadcast(size, root));
  uint64_t n_root = 0;
  std::memcpy(&n_root, size.data(), sizeof(n_root));
  bytes.resize(n_root);
  TRY(anchor()->broadcast(bytes, root));
  return bytes;
}

Result<void> Team::share(torch::Tensor& numbers, int root) {
  if (!circuits_ || numbers.numel() == 0) return {};
  numbers = numbers.contiguous();
  auto* const data = static_cast<uint8_t*>(numbers.data_ptr());
  return anchor()->broadcast({data, numbers.nbytes()}, root);
}

Result<std::vector<Bytes>> Team::bring(Bytes mine) {
  std::vector<Bytes> all;
  const uint64_t tag = kTag | n_sent_++;
  if (!leads()) {
    TRY(anchor()->send(0, tag, std::move(mine)));
    return all;
  }
  all.push_back(std::move(mine));
  for (int rank = 1; rank < size(); ++rank)
    all.push_back(TRY(anchor()->recv(rank, tag, std::numeric_limits<size_t>::max())));
  return all;
}

Result<NamedTensors> Team::collect(const NamedTensors& mine) {
  NamedTensors whole;
  if (!circuits_) {
    for (const auto& [name, tensor] : mine) whole[name] = tensor.detach().cpu();
    return whole;
  }
  const uint64_t tag = kTag | n_sent_++;
  if (!leads()) {
    TRY(send_tensors(*anchor(), 0, tag, mine));
    return whole;
  }
  for (const auto& [name, tensor] : mine) whole[name] = tensor.detach().cpu();
  for (int rank = 1; rank < size(); ++rank) {
    NamedTensors part = TRY(recv_tensors(*anchor(), rank, tag));
    whole.merge(part);
  }
  return whole;
}

Result<NamedTensors> Team::hand_out(const NamedTensors& all, const std::vector<std::string>& names) {
  const auto those = [&](const std::vector<std::string>& wanted) -> Result<NamedTensors> {
    NamedTensors found;
    for (const std::string& name : wanted) {
      const auto at = all.find(name);
      if (at == all.end()) return Error{Code::kNotFound, "tensor " + name + " is missing"};
      found[name] = at->second;
    }
    return found;
  };
  if (!circuits_) return those(names);
  const std::vector<Bytes> asked = TRY(bring(text_bytes(names)));
  const uint64_t tag = kTag | n_sent_++;
  if (!leads()) return recv_tensors(*anchor(), 0, tag);
  for (int rank = 1; rank < size(); ++rank) {
    const NamedTensors part = TRY(those(lines_of(asked[static_cast<size_t>(rank)])));
    TRY(send_tensors(*anchor(), rank, tag, part));
  }
  return those(names);
}

Error Team::failed(const Error& error) {
  if (!circuits_ || circuits_->control->failure()) return error;
  const std::string message = fmt::format("rank {}: {}", rank(), error.message);
  circuits_->pipe->abort(message);
  circuits_->anchor->abort(message);
  return Error{error.code, message};
}

Result<void> Team::leave() {
  if (!circuits_) return {};
  return circuits_->shutdown();
}

}  // namespace forebay::train
