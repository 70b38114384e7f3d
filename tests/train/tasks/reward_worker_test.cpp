#include "train/tasks/reward_worker.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace forebay::train {
namespace {

/// Some answers kill the process that scores them, some never come back.
class FragileTask : public Task {
 public:
  std::string_view name() const override { return "fragile"; }
  std::string alphabet() const override { return "x"; }
  int64_t max_answer_bytes() const override { return 8; }
  Item item(Split, uint64_t, uint64_t) const override { return {.prompt = "x", .answer = "x", .key = "x"}; }
  Score score(const Item& item, std::string_view answer) const override {
    if (answer == "die") ::_exit(3);
    if (answer == "hang") ::pause();
    return {.reward = answer == item.key ? 1.0 : 0.0, .format = 0.5, .declined = answer == "no"};
  }
};

TEST(RewardWorker, ADeathIsNoReward) {
  const FragileTask task;
  RewardWorker worker = RewardWorker::start(task, std::chrono::milliseconds(200)).value();
  const Item item = task.item(Split::kTrain, 0, 0);
  const std::vector<Answer> answers = {{&item, "x"},    {&item, "die"}, {&item, "x"},
                                       {&item, "hang"}, {&item, "no"},  {&item, ""}};
  const auto scores = worker.score(answers).value();
  ASSERT_EQ(scores.size(), answers.size());
  EXPECT_EQ(scores[0]->reward, 1.0);
  EXPECT_EQ(scores[0]->format, 0.5);
  EXPECT_FALSE(scores[1]);
  EXPECT_EQ(scores[2]->reward, 1.0);
  EXPECT_FALSE(scores[3]);
  EXPECT_EQ(scores[4]->reward, 0.0);
  EXPECT_TRUE(scores[4]->declined);
  EXPECT_EQ(scores[5]->reward, 0.0);
  EXPECT_EQ(worker.n_deaths(), 2);
}

TEST(RewardWorker, KilledFromOutsideIsReplaced) {
  const FragileTask task;
  RewardWorker worker = RewardWorker::start(task).value();
  ::kill(worker.process(), SIGKILL);
  const Item item = task.item(Split::kTrain, 0, 0);
  const std::vector<Answer> answers = {{&item, "x"}, {&item, "x"}};
  const auto scores = worker.score(answers).value();
  EXPECT_FALSE(scores[0]);
  EXPECT_EQ(scores[1]->reward, 1.0);
}

TEST(RewardWorker, ScoresAsTheTaskDoes) {
  const auto task = make_task("countdown").value();
  RewardWorker worker = RewardWorker::start(*task).value();
  std::vector<Item> items;
  for (uint64_t i = 0; i < 50; ++i) items.push_back(task->item(Split::kTrain, 1, i));
  std::vector<Answer> answers;
  for (size_t i = 0; i < items.size(); ++i) answers.push_back({&items[i], items[i / 2].answer});
  const auto scores = worker.score(answers).value();
  for (size_t i = 0; i < items.size(); ++i)
    EXPECT_EQ(scores[i]->reward, task->score(items[i], answers[i].text).reward);
}

}  // namespace
}  // namespace forebay::train
