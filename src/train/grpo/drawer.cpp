#include "train/grpo/drawer.h"

#include <limits>

#include "tokenizer/tokenizer.h"

namespace forebay::train {
namespace {

// Draws of training and of validation are of two streams; validation is greedy and needs none.
constexpr uint64_t kStreamsPerStep = uint64_t{1} << 32;
// Items of the warm start and of GRPO are draws of two seeds.
constexpr uint64_t kWarmStartSeed = 0x57a27;

}  // namespace

Result<std::unique_ptr<Drawer>> Drawer::start(const GrpoSettings& settings) {
  std::unique_ptr<Drawer> drawer(new Drawer(settings));
  drawer->task_ = TRY(make_task(settings.task.name));
  drawer->rewards_.emplace(TRY(RewardWorker::start(*drawer->task_)));
  return drawer;
}

Result<void> Drawer::learn_words(const Words& words) {
  sampler_ = TRY(Sampler::create(*words.storage, words.path,
                                 {.threads = static_cast<int>(settings_.sampler.threads),
                                  .n_sequences = settings_.sampler.sequences,
                                  .context = settings_.sampler.context,
                                  .max_window = settings_.sampler.window}));
  return {};
}

int64_t Drawer::max_tokens() const {
  return settings_.grpo.max_tokens > 0 ? settings_.grpo.max_tokens : task_->max_answer_bytes() + 1;
}

Result<std::vector<std::optional<Score>>> Drawer::score(std::span<const Item> items,
                                                        std::span<const Rollout> rollouts, size_t n_answers) {
  std::vector<Answer> answers;
  for (size_t i = 0; i < rollouts.size(); ++i)
    if (rollouts[i].ended) answers.push_back({&items[i / n_answers], sampler_->decode(rollouts[i])});
  const std::vector<std::optional<Score>> asked = TRY(rewards_->score(answers));
  // An answer that was cut off is none.
  std::vector<std::optional<Score>> scores;
  size_t next = 0;
  for (const Rollout& rollout : rollouts) scores.push_back(rollout.ended ? asked[next++] : Score{});
  return scores;
}

Result<Drawn> Drawer::draw(int64_t at, MetricsRow& row, std::stop_token stop) {
  Drawn d;
  d.n_answers = settings_.grpo.answers;
  const auto place = static_cast<uint64_t>(settings_.task.repeat_first ? 0 : at - 1);
  const auto n = static_cast<uint64_t>(settings_.grpo.prompts);
  std::vector<Item> items;
  for (uint64_t i = 0; i < n; ++i) {
    items.push_back(task_->item(Split::kTrain, static_cast<uint64_t>(settings_.task.seed), place * n + i));
    d.prompts.push_back(sampler_->encode(items.back().prompt));
  }
  d.rollouts = TRY(sampler_->draw(d.prompts,
                                  {.n_answers = d.n_answers,
                                   .max_tokens = max_tokens(),
                                   .seed = static_cast<uint64_t>(settings_.run.seed),
                                   .first_stream = place * kStreamsPerStep},
                                  stop));
  const std::vector<std::optional<Score>> scores =
      TRY(score(items, d.rollouts, static_cast<size_t>(d.n_answers)));

  double reward = 0, format = 0, declined = 0, wrongly_declined = 0, n_scored = 0, n_answerable = 0,
         cut_off = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    cut_off += d.rollouts[i].ended ? 0 : 1;
    const std::optional<Score>& s = scores[i];
    d.rewards.push_back(s ? std::optional(s->reward) : std::nullopt);
    if (!s) continue;
    const bool answerable = items[i / static_cast<size_t>(d.n_answers)].answerable;
    ++n_scored;
    n_answerable += answerable ? 1 : 0;
    reward += s->reward;
    format += s->format;
    declined += s->declined ? 1 : 0;
    wrongly_declined += s->declined && answerable ? 1 : 0;
  }
  row.add("reward", n_scored > 0 ? reward / n_scored : std::numeric_limits<double>::quiet_NaN());
  row.add("format", n_scored > 0 ? format / n_scored : std::numeric_limits<double>::quiet_NaN());
  row.add("declined", n_scored > 0 ? declined / n_scored : 0);
  row.add("over_refusal", n_answerable > 0 ? wrongly_declined / n_answerable : 0);
  row.add("cut_off", cut_off / static_cast<double>(d.rollouts.size()));
  return d;
}

Result<void> Drawer::validate(MetricsRow& row, std::stop_token stop) {
  std::vector<Item> items;
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t i = 0; i < settings_.validation.items; ++i) {
    items.push_back(task_->item(Split::kValidation, static_cast<uint64_t>(settings_.task.seed),
                                static_cast<uint64_t>(i)));
    prompts.push_back(sampler_->encode(items.back().prompt));
  }
  const std::vector<Rollout> rollouts =
      TRY(sampler_->draw(prompts, {.n_answers = 1, .max_tokens = max_tokens(), .greedy = true}, stop));
  const std::vector<std::optional<Score>> scores = TRY(score(items, rollouts, 1));
  double right = 0, format = 0, n = 0;
  for (const std::optional<Score>& s : scores)
    if (s) {
      right += s->reward;
      format += s->format;
      ++n;
    }
  row.add("val_accuracy", n > 0 ? right / n : std::numeric_limits<double>::quiet_NaN());
  row.add("val_items", n);
  row.add("val_format", n > 0 ? format / n : std::numeric_limits<double>::quiet_NaN());
  return {};
}

Result<Solved> Drawer::solved(int64_t at) const {
  const Tokenizer& tokenizer = sampler_->tokenizer();
  if (!tokenizer.eos())
    return Error{Code::kUnsupported, "sft: the vocabulary has no token that ends an answer"};
  Solved solved;
  const auto n = static_cast<uint64_t>(settings_.sft.batch);
  for (uint64_t i = 0; i < n; ++i) {
    const Item item = task_->item(Split::kTrain, static_cast<uint64_t>(settings_.task.seed) ^ kWarmStartSeed,
                                  static_cast<uint64_t>(at) * n + i);
    solved.prompts.push_back(sampler_->encode(item.prompt));
    solved.answers.push_back(tokenizer.encode(item.answer));
    solved.answers.back().push_back(*tokenizer.eos());
  }
  return solved;
}

}  // namespace forebay::train
