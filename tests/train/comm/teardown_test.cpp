// A hundred starts and ends of three processes, one of which dies at a random point: the others end within
// seconds, say who it was, and leave nothing behind.
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/child_process.h"
#include "ranks.h"

namespace forebay::train {
namespace {

struct Ended {
  int code = -1;  // still running
  std::string said;
};

std::string read_all(int fd) {
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

/// The processes' ends, by rank; who runs after `patience` is killed.
std::vector<Ended> run(int n_rounds, int die_rank, int die_at, const std::string& how,
                       Milliseconds patience) {
  constexpr int kSize = 3;
  const std::string port = std::to_string(free_port().value());
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < kSize; ++rank) {
    ChildOptions options;
    options.arguments = {FOREBAY_COMM_RANK,        std::to_string(rank),     std::to_string(kSize),  port,
                         std::to_string(n_rounds), std::to_string(die_rank), std::to_string(die_at), how};
    options.captured = true;
    children.push_back(ChildProcess::start(options).value());
  }
  std::vector<Ended> ended(kSize);
  const Clock::time_point end = Clock::now() + patience;
  for (int n_left = kSize; n_left > 0 && Clock::now() < end;) {
    std::this_thread::sleep_for(Milliseconds(1));
    n_left = 0;
    for (int rank = 0; rank < kSize; ++rank) {
      ChildProcess& child = children[static_cast<size_t>(rank)];
      if (const std::optional<int> code = child.finished())
        ended[static_cast<size_t>(rank)].code = *code;
      else if (how != "stop" || rank != die_rank)
        ++n_left;
    }
  }
  for (size_t rank = 0; rank < kSize; ++rank) ended[rank].said = read_all(children[rank].output());
  return ended;
}

TEST(Teardown, InPeace) {
  for (const Ended& ended : run(3, -1, -1, "exit", Milliseconds(20000))) {
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_EQ(ended.said, "");
  }
}

TEST(Teardown, AHundredTimesWithADeath) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    const int die_rank = static_cast<int>(random() % 3), die_at = 1 + static_cast<int>(random() % 12);
    const std::string how = random() % 2 == 0 ? "kill" : "exit";
    const std::vector<Ended> ended = run(3, die_rank, die_at, how, Milliseconds(20000));
    SCOPED_TRACE(fmt::format("seed {}, run {}: rank {} at call {} by {}", seed, i, die_rank, die_at, how));
    for (int rank = 0; rank < 3; ++rank) {
      const Ended& end = ended[static_cast<size_t>(rank)];
      if (rank == die_rank) {
        EXPECT_EQ(end.code, how == "kill" ? 128 + SIGKILL : 9);
        continue;
      }
      // Dead after the last wait for all is dead too late to be missed.
      if (die_at == 12 && end.code == 0) continue;
      EXPECT_EQ(end.code, 3) << "rank " << rank << " said " << end.said;
      EXPECT_EQ(end.said.find(fmt::format("rank {} is gone", die_rank)), 0u)
          << "rank " << rank << " said " << end.said;
    }
  }
  fmt::print("100 runs of 3 processes: {:.1f} s\n", seconds_since(start));
}

TEST(Teardown, WhoStandsStillIsNamedToo) {
  for (const int die_rank : {0, 2}) {
    const std::vector<Ended> ended = run(3, die_rank, 4, "stop", Milliseconds(15000));
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == die_rank) continue;
      EXPECT_EQ(ended[static_cast<size_t>(rank)].code, 3);
      EXPECT_EQ(ended[static_cast<size_t>(rank)].said,
                fmt::format("rank {} has been silent for 1.5 s\n", die_rank));
    }
  }
}

}  // namespace
}  // namespace forebay::train
