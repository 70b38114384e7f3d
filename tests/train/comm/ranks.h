/// Several ranks as threads of this process: nothing of theirs is global.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/free_port.h"
#include "train/comm/comm.h"

namespace forebay::train {

inline Timeouts quick() {
  return {.pg = Milliseconds(3000),
          .step = Milliseconds(6000),
          .init = Milliseconds(8000),
          .silence = Milliseconds(4000)};
}

inline World world_of(int rank, int size, int port) {
  World world;
  world.rank = rank;
  world.size = size;
  world.port = port;
  return world;
}

struct Rank {
  std::unique_ptr<Control> control;
  std::unique_ptr<Comm> comm;
};

inline Result<Rank> join(const World& world, const Timeouts& timeouts, const LinkOptions& link = {}) {
  Rank joined;
  joined.control = TRY(Control::join(world, timeouts));
  std::unique_ptr<Transport> transport;
  if (world.size > 1) transport = TRY(make_tcp_transport(*joined.control, "pipe"));
  joined.comm = std::make_unique<Comm>("pipe", *joined.control, std::move(transport), link);
  return joined;
}

/// Runs `body` as each rank and shuts down; what a rank returned, by rank.
inline std::vector<Result<void>> run_ranks(int size, const std::function<Result<void>(Rank&)>& body,
                                           const LinkOptions& link = {}, const Timeouts& timeouts = quick()) {
  const int port = free_port().value();
  std::vector<Result<void>> results(static_cast<size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        results[static_cast<size_t>(rank)] = [&]() -> Result<void> {
          Rank joined = TRY(join(world_of(rank, size, port), timeouts, link));
          TRY(body(joined));
          TRY(joined.comm->shutdown());
          return joined.control->leave();
        }();
      });
  }
  return results;
}

inline void expect_all_well(const std::vector<Result<void>>& results) {
  for (size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_TRUE(results[rank]) << "rank " << rank << ": " << results[rank].error().message;
}

inline Result<void> check(bool holds, const std::string& what) {
  if (holds) return {};
  return Error{Code::kInternal, what};
}

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace forebay::train
