// What a step drew, as one message.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "train/grpo/drawer.h"

namespace forebay::train {
namespace {

/// Processes of one run are on machines of one kind: numbers go as they are in memory.
class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    put_all(std::span<const T>(&value, 1));
  }
  template <typename T>
  void put_all(std::span<const T> values) {
    const auto* first = reinterpret_cast<const uint8_t*>(values.data());
    bytes.insert(bytes.end(), first, first + values.size_bytes());
  }
  template <typename T>
  void put_list(const std::vector<T>& values) {
    put(static_cast<uint64_t>(values.size()));
    put_all(std::span<const T>(values));
  }

  Bytes bytes;
};

class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value = {};
    take(&value, sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> get_list() {
    std::vector<T> values(count(sizeof(T)));
    take(values.data(), values.size() * sizeof(T));
    return values;
  }
  /// A number of entries that each take at least this much.
  size_t count(size_t entry_bytes) {
    const auto n = get<uint64_t>();
    if (n > (bytes_.size() - at_) / entry_bytes) is_whole_ = false;
    return is_whole_ ? n : 0;
  }
  Result<void> finish() const {
    if (is_whole_ && at_ == bytes_.size()) return {};
    return Error{Code::kCorrupt, fmt::format("{} bytes that came are not what a step drew", bytes_.size())};
  }

 private:
  void take(void* to, size_t n) {
    if (n > bytes_.size() - at_) is_whole_ = false;
    if (!is_whole_ || n == 0) return;
    std::memcpy(to, bytes_.data() + at_, n);
    at_ += n;
  }

  const Bytes& bytes_;
  size_t at_ = 0;
  bool is_whole_ = true;
};

void put_lists(Writer& out, const std::vector<std::vector<int32_t>>& lists) {
  out.put(static_cast<uint64_t>(lists.size()));
  for (const std::vector<int32_t>& list : lists) out.put_list(list);
}

std::vector<std::vector<int32_t>> get_lists(Reader& in) {
  std::vector<std::vector<int32_t>> lists(in.count(sizeof(uint64_t)));
  for (std::vector<int32_t>& list : lists) list = in.get_list<int32_t>();
  return lists;
}

}  // namespace

std::vector<TrainedSequence> Drawn::sequences() const {
  std::vector<TrainedSequence> all;
  for (size_t i = 0; i < rollouts.size(); ++i)
    all.push_back({prompts[i / static_cast<size_t>(n_answers)], rollouts[i].tokens});
  return all;
}

torch::Tensor Drawn::log_probs() const {
  std::vector<float> values;
  for (const Rollout& rollout : rollouts)
    values.insert(values.end(), rollout.log_probs.begin(), rollout.log_probs.end());
  return torch::tensor(values);
}

Bytes Drawn::to_bytes() const {
  Writer out;
  put_lists(out, prompts);
  out.put(n_answers);
  for (size_t i = 0; i < rollouts.size(); ++i) {
    out.put_list(rollouts[i].tokens);
    out.put_list(rollouts[i].log_probs);
    out.put(static_cast<uint8_t>(rollouts[i].ended));
    out.put(rewards[i].value_or(std::nan("")));
  }
  return out.bytes;
}

Result<Drawn> Drawn::from_bytes(const Bytes& bytes) {
  Reader in(bytes);
  Drawn d;
  d.prompts = get_lists(in);
  d.n_answers = in.get<int64_t>();
  // Each rollout takes at least its two counts: more of them cannot be in here.
  const bool plausible = d.n_answers >= 0 && static_cast<size_t>(d.n_answers) <= bytes.size();
  const size_t n = plausible ? d.prompts.size() * static_cast<size_t>(d.n_answers) : 0;
  bool fits = plausible && n <= bytes.size();
  for (size_t i = 0; fits && i < n; ++i) {
    Rollout rollout;
    rollout.tokens = in.get_list<int32_t>();
    rollout.log_probs = in.get_list<float>();
    rollout.ended = in.get<uint8_t>() != 0;
    const auto reward = in.get<double>();
    fits = rollout.tokens.size() == rollout.log_probs.size();
    d.rollouts.push_back(std::move(rollout));
    d.rewards.push_back(std::isnan(reward) ? std::nullopt : std::optional(reward));
  }
  TRY(in.finish());
  if (!fits) return Error{Code::kCorrupt, "what a step drew: as many log-probs as tokens were due"};
  return d;
}

std::vector<TrainedSequence> Solved::sequences() const {
  std::vector<TrainedSequence> all;
  for (size_t i = 0; i < prompts.size(); ++i) all.push_back({prompts[i], answers[i]});
  return all;
}

Bytes Solved::to_bytes() const {
  Writer out;
  put_lists(out, prompts);
  put_lists(out, answers);
  return out.bytes;
}

Result<Solved> Solved::from_bytes(const Bytes& bytes) {
  Reader in(bytes);
  Solved solved;
  solved.prompts = get_lists(in);
  solved.answers = get_lists(in);
  TRY(in.finish());
  if (solved.prompts.size() != solved.answers.size())
    return Error{Code::kCorrupt, "as many answers as prompts were due"};
  return solved;
}

}  // namespace forebay::train
