#include "replay/route_log.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

namespace forebay {
namespace {

/// Which experts are left, by block and expert.
Result<std::vector<bool>> kept_experts(const TraceHeader& header, std::span<const ExpertId> pruned) {
  std::vector<bool> kept(static_cast<size_t>(header.n_blocks()) * header.n_experts, true);
  for (const ExpertId id : pruned) {
    if (id.block < 0 || id.block >= header.n_blocks() || id.index < 0 || id.index >= header.n_experts)
      return Error{Code::kInvalidArgument,
                   fmt::format("pruned expert {} of block {}: the trace has {} experts in each "
                               "of {} blocks",
                               id.index, id.block, header.n_experts, header.n_blocks())};
    kept[static_cast<size_t>(id.block) * header.n_experts + id.index] = false;
  }
  return kept;
}

class Loader {
 public:
  Loader(TraceReader reader, std::vector<bool> kept)
      : reader_(std::move(reader)), kept_(std::move(kept)), distinct_(reader_.header().n_experts) {
    log_.header = reader_.header();
    while (log_.header.expert_bytes[first_block_] == 0) ++first_block_;
  }

  Result<RouteLog> load() {
    while (true) {
      const std::optional<TraceRow> row = TRY(reader_.next());
      if (!row) break;
      if (row->starts_request) {
        end_request();
        begin_request(*row);
      }
      add_row(*row);
    }
    end_request();
    log_.complete = reader_.complete();
    log_.n_tokens = n_tokens_;
    index_next_uses();
    find_prompt_tails();
    return std::move(log_);
  }

 private:
  void begin_request(const TraceRow& row) {
    LoggedRequest request;
    request.first_row = static_cast<uint32_t>(log_.n_rows());
    request.first_use = static_cast<uint32_t>(log_.uses.size());
    request.block = row.block;
    request.phase = row.phase;
    log_.requests.push_back(request);
  }

  void add_row(const TraceRow& row) {
    ++log_.requests.back().n_rows;
    const auto n = static_cast<size_t>(log_.header.n_candidates());
    const size_t first = log_.ids.size();
    const size_t block_start = static_cast<size_t>(row.block) * log_.header.n_experts;
    for (size_t r = 0; r < n; ++r) {
      if (!kept_[block_start + row.candidates.ids[r]]) continue;
      log_.ids.push_back(row.candidates.ids[r]);
      log_.gaps.push_back(row.candidates.gaps[r]);
    }
    const size_t n_left = log_.ids.size() - first;
    log_.row_candidates.push_back(static_cast<uint8_t>(n_left));
    log_.ids.resize(first + n);
    log_.gaps.resize(first + n);
    log_.log_sums.push_back(row.candidates.log_sum);
    for (size_t r = 0; r < std::min<size_t>(n_left, log_.header.n_used); ++r)
      distinct_.add(log_.ids[first + r]);
    log_.n_biased_rows += !std::equal(row.chosen.begin(), row.chosen.end(), row.candidates.ids.begin());
  }

  void end_request() {
    if (log_.requests.empty()) return;
    LoggedRequest& request = log_.requests.back();
    const std::span<const uint16_t> uses = distinct_.sorted();
    log_.uses.insert(log_.uses.end(), uses.begin(), uses.end());
    request.n_uses = static_cast<uint32_t>(uses.size());
    distinct_.clear();
    // Every window passes the first block that has experts: its rows there are the tokens.
    if (request.block == first_block_ && request.phase != RoutePhase::kDraft) {
      request.new_tokens = request.n_rows;
      n_tokens_before_ = n_tokens_;
      n_tokens_ += request.n_rows;
    }
    request.n_tokens_before = static_cast<uint32_t>(n_tokens_before_);
  }

  void index_next_uses() {
    std::vector<uint32_t> next(kept_.size(), kNeverAgain);
    log_.next_use.resize(log_.uses.size());
    for (size_t r = log_.requests.size(); r-- > 0;) {
      const LoggedRequest& request = log_.requests[r];
      const size_t block_start = static_cast<size_t>(request.block) * log_.header.n_experts;
      for (uint32_t u = request.first_use; u < request.first_use + request.n_uses; ++u) {
        uint32_t& at = next[block_start + log_.uses[u]];
        log_.next_use[u] = at;
        at = static_cast<uint32_t>(r);
      }
    }
  }

  /// A prompt ends where its block is next asked for something else.
  void find_prompt_tails() {
    std::vector<uint32_t> after(log_.header.n_blocks(), 0);  // rows of the same prompt, by block
    for (size_t r = log_.requests.size(); r-- > 0;) {
      LoggedRequest& request = log_.requests[r];
      uint32_t& n_after = after[request.block];
      if (request.phase != RoutePhase::kPrefill) {
        n_after = 0;
        continue;
      }
      request.n_exact = std::min(request.n_rows, kExactPromptTail - std::min(kExactPromptTail, n_after));
      n_after += request.n_rows;
    }
  }

  TraceReader reader_;
  const std::vector<bool> kept_;
  DistinctExperts distinct_;
  RouteLog log_;
  int32_t first_block_ = 0;
  uint64_t n_tokens_ = 0;
  uint64_t n_tokens_before_ = 0;  // the window being read
};

}  // namespace

uint64_t RouteLog::total_slot_bytes() const {
  uint64_t sum = 0;
  for (const uint64_t bytes : header.slot_bytes) sum += bytes * header.n_experts;
  return sum;
}

uint64_t RouteLog::largest_slot_bytes() const {
  return *std::max_element(header.slot_bytes.begin(), header.slot_bytes.end());
}

int RouteLog::n_blocks_with_experts() const {
  return static_cast<int>(header.n_blocks() -
                          std::count(header.slot_bytes.begin(), header.slot_bytes.end(), 0));
}

std::span<const uint16_t> DistinctExperts::sorted() {
  std::sort(list_.begin(), list_.end(), [this](uint16_t a, uint16_t b) {
    return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
  });
  return list_;
}

Result<RouteLog> load_route_log(Storage& storage, const Path& path, std::span<const ExpertId> pruned) {
  try {
    TraceReader reader = TRY(TraceReader::open(storage, path));
    std::vector<bool> kept = TRY(kept_experts(reader.header(), pruned));
    return Loader(std::move(reader), std::move(kept)).load();
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfMemory, fmt::format("{}: no memory for the trace's rows", path.string())};
  }
}

}  // namespace forebay
