// Messages, collectives, the meter and the emulated link, with ranks as threads.
#include "train/comm/comm.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks.h"

namespace forebay::train {
namespace {

TEST(Comm, MessagesArriveInOrderAndAreCounted) {
  expect_all_well(run_ranks(3, [](Rank& rank) -> Result<void> {
    Comm& comm = *rank.comm;
    const int next = (comm.rank() + 1) % 3, previous = (comm.rank() + 2) % 3;
    for (uint64_t tag = 0; tag < 20; ++tag)
      TRY(comm.send(next, tag, Bytes(tag * 100, static_cast<uint8_t>(tag))));
    for (uint64_t tag = 0; tag < 20; ++tag) {
      const Bytes bytes = TRY(comm.recv(previous, tag, tag * 100));
      TRY(check(bytes == Bytes(tag * 100, static_cast<uint8_t>(tag)), "other bytes"));
    }
    TRY(check(comm.bytes_sent().bytes == 19000 && comm.bytes_received().bytes == 19000, "bytes"));
    TRY(check(comm.bytes_sent().header_bytes == 20 * 13 && comm.bytes_sent().messages == 20, "messages"));
    return check(!comm.send(comm.rank(), 0, {}) && !comm.send(3, 0, {}), "sent to nobody");
  }));
}

TEST(Comm, LargeMessagesBothWaysAtOnce) {
  expect_all_well(run_ranks(2, [](Rank& rank) -> Result<void> {
    const int other = 1 - rank.comm->rank();
    Bytes bytes(20 << 20);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 997);
    TRY(rank.comm->send(other, 1, bytes));
    const Bytes got = TRY(rank.comm->recv(other, 1, bytes.size()));
    return check(got == bytes, "other bytes");
  }));
}

TEST(Comm, TheMeterZeroesWhatWasNotDeclared) {
  expect_all_well(run_ranks(2, [](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 0) return rank.comm->send(1, 5, Bytes(100, 7));
    const Bytes bytes = TRY(rank.comm->recv(0, 5, 60));
    TRY(check(rank.comm->bytes_received().bytes == 100, "every byte that came counts"));
    Bytes expected(100, 7);
    std::fill(expected.begin() + 60, expected.end(), uint8_t{0});
    return check(bytes == expected, "what was not declared is zero");
  }));
}

TEST(Comm, Collectives) {
  expect_all_well(run_ranks(4, [](Rank& rank) -> Result<void> {
    Comm& comm = *rank.comm;
    const auto mine = static_cast<uint8_t>(10 + comm.rank());
    for (int root = 0; root < 4; ++root) {
      Bytes bytes(5, mine);
      TRY(comm.broadcast(bytes, root));
      TRY(check(bytes == Bytes(5, static_cast<uint8_t>(10 + root)), "broadcast"));
    }
    std::vector<float> values = {1.0f + static_cast<float>(comm.rank()),
                                 1e8f * (comm.rank() == 1 ? -1.0f : 1.0f)};
    TRY(comm.allreduce_f32(values));
    TRY(check(values[0] == 10 && values[1] == 2e8f, "allreduce"));
    const std::vector<Bytes> all = TRY(comm.allgather(Bytes(static_cast<size_t>(comm.rank()), mine)));
    for (size_t other = 0; other < 4; ++other)
      TRY(check(all[other] == Bytes(other, static_cast<uint8_t>(10 + other)), "allgather"));
    TRY(comm.barrier_named("here"));
    TRY(comm.barrier_named("here"));
    return check(comm.bytes_sent().bytes == 0 && comm.bytes_sent().collective_bytes > 0, "collectives apart");
  }));
}

TEST(Comm, NothingIsQueuedWhileASlowPeerIsWaitedFor) {
  // Longer than pg: inside a collective this would be an error.
  const Timeouts timeouts{.pg = Milliseconds(150),
                          .step = Milliseconds(6000),
                          .init = Milliseconds(8000),
                          .silence = Milliseconds(4000)};
  std::atomic<bool> late_is_there = false;
  const auto body = [&](Rank& rank) -> Result<void> {
    std::atomic<bool> done = false, broken = false;
    std::jthread watcher([&] {
      while (!done) {
        if (!late_is_there && rank.comm->collectives_under_way() > 0) broken = true;
        std::this_thread::sleep_for(Milliseconds(1));
      }
    });
    if (rank.comm->rank() == 2) {
      std::this_thread::sleep_for(Milliseconds(400));
      late_is_there = true;
    }
    std::vector<float> values = {1};
    const Result<void> reduced = rank.comm->allreduce_f32(values);
    done = true;
    watcher.join();
    TRY(reduced);
    return check(!broken && values[0] == 3, "a collective was under way without rank 2");
  };
  expect_all_well(run_ranks(3, body, {}, timeouts));
}

TEST(Comm, AWrongTagIsAnErrorEverywhere) {
  const std::vector<Result<void>> results = run_ranks(3, [](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 0) TRY(rank.comm->send(1, 1, {}));
    TRY(rank.comm->recv((rank.comm->rank() + 2) % 3, 2, 0));
    return {};
  });
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("0x1 came where 0x2 was due"), std::string::npos)
        << result.error().message;
  }
}

TEST(Comm, AnAbortEndsAllWaitsWithItsReason) {
  const Clock::time_point start = Clock::now();
  const std::vector<Result<void>> results = run_ranks(3, [](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 1) return rank.comm->barrier_named("never");
    if (rank.comm->rank() == 2) rank.comm->abort("rank 2: the loss is not a number");
    TRY(rank.comm->recv(1, 0, 0));
    return {};
  });
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "rank 2: the loss is not a number");
  }
  EXPECT_LT(seconds_since(start), 4);
}

TEST(Comm, OneProcessNeedsNobody) {
  expect_all_well(run_ranks(1, [](Rank& rank) -> Result<void> {
    std::vector<float> values = {3};
    TRY(rank.comm->allreduce_f32(values));
    TRY(rank.comm->barrier_named("x"));
    const std::vector<Bytes> all = TRY(rank.comm->allgather(Bytes{1}));
    TRY(check(all == std::vector<Bytes>{{1}}, "allgather"));
    return check(!rank.comm->send(0, 0, {}), "sent to itself");
  }));
}

TEST(LinkModel, IsBytesOverRatePlusLatency) {
  LinkModel link({.bytes_per_second = 1000, .latency_s = 0.5, .packet_bytes = 100}, 0, 1);
  EXPECT_DOUBLE_EQ(link.arrival(10, 250), 10 + 0.25 + 0.5);
  EXPECT_DOUBLE_EQ(link.arrival(10, 100), 10 + 0.25 + 0.1 + 0.5) << "waits for the one before";
  EXPECT_DOUBLE_EQ(link.arrival(20, 0), 20 + 0.001 + 0.5);
  EXPECT_EQ(link.count().messages, 3);
  EXPECT_EQ(link.count().packets, 3 + 1 + 1);
  LinkModel none({}, 0, 1);
  EXPECT_DOUBLE_EQ(none.arrival(3, 1 << 20), 3);
}

TEST(LinkModel, LossAndJitterHaveTheirMeans) {
  const LinkOptions options{.bytes_per_second = 1e6,
                            .latency_s = 0.01,
                            .jitter_s = 0.02,
                            .loss = 0.2,
                            .resend_s = 0.1,
                            .packet_bytes = 1000,
                            .seed = 3};
  LinkModel link(options, 0, 1), same(options, 0, 1), other(options, 1, 0);
  double sum = 0, last = 0;
  bool differs = false;
  constexpr int kN = 20000;
  for (int i = 0; i < kN; ++i) {
    const double now = i * 10.0, arrival = link.arrival(now, 1000);
    ASSERT_EQ(arrival, same.arrival(now, 1000));
    differs = differs || arrival != other.arrival(now, 1000);
    ASSERT_GE(arrival, last);
    last = arrival;
    sum += arrival - now;
  }
  EXPECT_TRUE(differs);
  const double resent = 0.2 / 0.8;  // mean tries after the first
  EXPECT_NEAR(static_cast<double>(link.count().resent) / kN, resent, 0.02);
  EXPECT_NEAR(sum / kN, 0.001 + 0.01 + 0.01 + resent * 0.101, 0.002);
  EXPECT_FALSE((LinkOptions{.loss = 1}).check());
  EXPECT_FALSE((LinkOptions{.latency_s = -1}).check());
  EXPECT_TRUE(options.check());
}

TEST(Comm, AnEmulatedLinkTakesItsTime) {
  const LinkOptions link{.bytes_per_second = 1e6, .latency_s = 0.05};
  const auto body = [](Rank& rank) -> Result<void> {
    // Both hand over their forty messages at once: the wire is full, latency is paid once. Paid for each, it
    // would be two seconds.
    const Clock::time_point start = Clock::now();
    const int other = 1 - rank.comm->rank();
    for (uint64_t tag = 0; tag < 40; ++tag) TRY(rank.comm->send(other, tag, Bytes(5000)));
    for (uint64_t tag = 0; tag < 40; ++tag) TRY(rank.comm->recv(other, tag, 5000));
    const double took = seconds_since(start), predicted = 40 * 5000 / 1e6 + 0.05;
    return check(took > predicted - 0.05 && took < predicted + 1,
                 fmt::format("took {} s, predicted {} s", took, predicted));
  };
  expect_all_well(run_ranks(2, body, link));
}

}  // namespace
}  // namespace forebay::train
