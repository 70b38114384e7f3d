// Stages as processes, over TCP, Gloo and NCCL: the numbers of one process, and what is left when one dies.
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "../comm/ranks.h"
#include "core/child_process.h"

namespace forebay::train {
namespace {

struct Ended {
  int code = -1;
  std::string said;        // stdout
  std::string complained;  // stderr, where libraries write what they like
  double seconds = 0;      // since the start
};

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  return text;
}

std::vector<Ended> run(int size, const std::vector<std::string>& arguments) {
  // NCCL says its version on stdout where this asks for it.
  ::unsetenv("NCCL_DEBUG");
  const std::string port = std::to_string(free_port().value());
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < size; ++rank) {
    ChildOptions options;
    options.arguments.emplace_back(FOREBAY_PIPELINE_RANK);
    for (const std::string& argument : arguments) options.arguments.push_back(argument);
    options.environment = {{"RANK", std::to_string(rank)},
                           {"LOCAL_RANK", std::to_string(rank)},
                           {"WORLD_SIZE", std::to_string(size)},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", port},
                           {"OMP_NUM_THREADS", "1"},
                           {"TORCH_CPP_LOG_LEVEL", "ERROR"}};
    options.captured = true;
    children.push_back(ChildProcess::start(options).value());
  }
  std::vector<Ended> ended(static_cast<size_t>(size));
  const Clock::time_point start = Clock::now();
  for (int n_left = size; n_left > 0 && seconds_since(start) < 100;) {
    std::this_thread::sleep_for(Milliseconds(2));
    n_left = 0;
    for (size_t rank = 0; rank < ended.size(); ++rank) {
      if (ended[rank].code >= 0) continue;
      ++n_left;
      const std::optional<int> code = children[rank].finished();
      if (!code) continue;
      ended[rank].code = *code;
      ended[rank].seconds = seconds_since(start);
    }
  }
  for (size_t rank = 0; rank < ended.size(); ++rank) {
    ended[rank].said = read_all(children[rank].output());
    ended[rank].complained = read_all(children[rank].errors());
  }
  return ended;
}

void expect_equal_to_one_process(const std::string& backend) {
  const std::vector<Ended> all = run(2, {backend});
  for (const Ended& ended : all) {
    EXPECT_EQ(ended.code, 0) << ended.said << ended.complained;
    EXPECT_EQ(ended.said, fmt::format("{0} codec: logits 0, gradients 0, norm 0\n"
                                      "{0} dense: logits 0, gradients 0, norm 0\n"
                                      "{0} tied: logits 0, gradients 0, norm 0\n",
                                      backend));
  }
  fmt::print("{}: two processes equal one: max |difference| 0 of logits, gradients and norm, {:.1f} s\n",
             backend, all[0].seconds);
}

void expect_death_is_heard_of(const std::string& backend) {
  const std::vector<Ended> all = run(3, {backend, "1"});
  EXPECT_EQ(all[1].code, 9);
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(all[rank].code, 3) << all[rank].said << all[rank].complained;
    EXPECT_EQ(all[rank].said, "rank 1 is gone: its connection closed\n");
    EXPECT_LT(all[rank].seconds - all[1].seconds, 5);
  }
}

TEST(Processes, OverTcpEqualOne) {
  expect_equal_to_one_process("tcp");
}
TEST(Processes, OverTcpADeathIsHeardOf) {
  expect_death_is_heard_of("tcp");
}

#ifdef FOREBAY_HAS_GLOO
TEST(Processes, OverGlooEqualOne) {
  expect_equal_to_one_process("gloo");
}
TEST(Processes, OverGlooADeathIsHeardOf) {
  expect_death_is_heard_of("gloo");
}
#endif

#ifdef FOREBAY_HAS_NCCL
TEST(Processes, OverNcclEqualOne) {
  if (torch::cuda::device_count() < 2) GTEST_SKIP() << "NCCL wants a device for each of two processes";
  expect_equal_to_one_process("nccl");
}
TEST(Processes, OverNcclADeathIsHeardOf) {
  if (torch::cuda::device_count() < 3) GTEST_SKIP() << "NCCL wants a device for each of three processes";
  expect_death_is_heard_of("nccl");
}
#endif

}  // namespace
}  // namespace forebay::train
