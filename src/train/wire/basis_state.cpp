// A bank of bases in a checkpoint.
#include <cstdio>

#include <fmt/format.h>

#include "train/wire/basis.h"

namespace forebay::train {
namespace {

// "boundary.3.numbers": rows and step of the sketch, generation.
constexpr int64_t kNumbers = 3;

std::string key_of(int64_t boundary, std::string_view what) {
  return fmt::format("boundary.{}.{}", boundary, what);
}

/// The boundary that a "boundary.N.numbers" names.
std::optional<int64_t> boundary_of(const std::string& key) {
  int64_t boundary = 0;
  char end = 0;
  if (std::sscanf(key.c_str(), "boundary.%ld.number%c", &boundary, &end) == 2 && end == 's') return boundary;
  return std::nullopt;
}

}  // namespace

std::map<std::string, torch::Tensor> BasisBank::state() const {
  std::map<std::string, torch::Tensor> state;
  state["refreshes"] = torch::tensor(n_refreshes_, torch::kInt64);
  for (const auto& [boundary, basis] : bases_) {
    state[key_of(boundary, "numbers")] =
        torch::tensor({basis.sketch_rows, basis.sketch_step, basis.generation}, torch::kInt64);
    if (basis.active_WR.defined()) state[key_of(boundary, "active")] = basis.active_WR.cpu().clone();
    if (basis.sketch_WR.defined()) state[key_of(boundary, "sketch")] = basis.sketch_WR.cpu().clone();
  }
  return state;
}

Result<void> BasisBank::restore(const std::map<std::string, torch::Tensor>& state) {
  const auto find = [&](const std::string& key) {
    const auto found = state.find(key);
    return found == state.end() ? torch::Tensor() : found->second;
  };
  const auto wrong = [&](const std::string& key) {
    return Error{Code::kInvalidArgument,
                 fmt::format("state of a codec's bases: '{}' is missing or of another shape than {} x {}",
                             key, width_, rank_)};
  };
  const auto fits = [&](const torch::Tensor& q) {
    return !q.defined() || (q.dim() == 2 && q.size(0) == width_ && q.size(1) == rank_);
  };
  const torch::Tensor refreshes = find("refreshes");
  if (!refreshes.defined() || refreshes.numel() != 1) return wrong("refreshes");
  std::map<int64_t, Basis> bases;
  for (const auto& [key, numbers] : state) {
    const std::optional<int64_t> boundary = boundary_of(key);
    if (!boundary) continue;
    if (numbers.numel() != kNumbers) return wrong(key);
    Basis basis;
    basis.active_WR = find(key_of(*boundary, "active"));
    basis.sketch_WR = find(key_of(*boundary, "sketch"));
    if (!fits(basis.active_WR)) return wrong(key_of(*boundary, "active"));
    if (!fits(basis.sketch_WR)) return wrong(key_of(*boundary, "sketch"));
    basis.sketch_rows = numbers[0].item<int64_t>();
    basis.sketch_step = numbers[1].item<int64_t>();
    basis.generation = numbers[2].item<int64_t>();
    if ((basis.sketch_rows > 0) != basis.sketch_WR.defined()) return wrong(key_of(*boundary, "sketch"));
    if (basis.generation > 0) {
      if (!basis.active_WR.defined()) return wrong(key_of(*boundary, "active"));
      basis.content = content_checksum(basis.active_WR);
    }
    bases[*boundary] = std::move(basis);
  }
  bases_ = std::move(bases);
  n_refreshes_ = refreshes.item<int64_t>();
  return {};
}

}  // namespace forebay::train
