// How processes meet, and what is said when they do not.
#include "train/comm/control.h"

#include <atomic>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks.h"

namespace forebay::train {
namespace {

TEST(Timeouts, Nest) {
  EXPECT_TRUE(Timeouts{}.check());
  const auto message = [](const Timeouts& timeouts) { return timeouts.check().error().message; };
  EXPECT_EQ(message({.pg = Milliseconds(5000), .step = Milliseconds(5000)}),
            "timeouts pg 5 s, step 5 s, init 900 s: each must be longer than the one before");
  EXPECT_FALSE((Timeouts{.step = Milliseconds(900'000)}).check());
  EXPECT_FALSE((Timeouts{.pg = Milliseconds(0)}).check());
  EXPECT_FALSE((Timeouts{.silence = Milliseconds(600'000)}).check());
}

TEST(ControlMessage, ComesBackAndDamageIsRefused) {
  const ControlMessage message{.kind = ControlMessage::Kind::kRelease,
                               .rank = -1,
                               .size = 7,
                               .name = "here",
                               .parts = {{1, 2, 3}, {}, {4}}};
  const Bytes bytes = encode(message);
  MessageBuffer buffer;
  for (const uint8_t byte : bytes) {
    EXPECT_FALSE(buffer.next().value());
    buffer.add({&byte, 1});
  }
  EXPECT_EQ(*buffer.next().value(), message);
  EXPECT_FALSE(buffer.next().value());
  // Shorter, or with another byte: an error or another message.
  const std::span<const uint8_t> body = std::span(bytes).subspan(4);
  for (size_t n = 0; n < body.size(); ++n) EXPECT_FALSE(decode(body.first(n)));
  for (size_t i = 0; i < body.size(); ++i)
    for (const int flip : {1, 0x80, 0xff}) {
      Bytes damaged(body.begin(), body.end());
      damaged[i] = static_cast<uint8_t>(damaged[i] ^ flip);
      const Result<ControlMessage> read = decode(damaged);
      EXPECT_TRUE(!read || *read != message);
    }
  MessageBuffer small(10);
  small.add(bytes);
  EXPECT_FALSE(small.next());
}

TEST(Control, GathersByRankUnderAnyName) {
  expect_all_well(run_ranks(4, [](Rank& rank) -> Result<void> {
    for (int round = 0; round < 20; ++round) {
      const std::vector<Bytes> all = TRY(rank.control->gather(
          round % 2 == 0 ? "even" : "odd", Bytes{static_cast<uint8_t>(rank.control->rank() * 20 + round)}));
      for (size_t other = 0; other < 4; ++other)
        TRY(check(all[other] == Bytes{static_cast<uint8_t>(other * 20 + static_cast<size_t>(round))},
                  "parts"));
    }
    return {};
  }));
}

TEST(Control, WhoIsMissingIsNamedToAll) {
  const int port = free_port().value();
  const Timeouts timeouts{.pg = Milliseconds(100),
                          .step = Milliseconds(1400),
                          .init = Milliseconds(1500),
                          .silence = Milliseconds(1300)};
  std::string messages[2];
  {
    std::vector<std::jthread> threads;
    for (const int rank : {0, 2})
      threads.emplace_back([&, rank] {
        messages[rank / 2] = Control::join(world_of(rank, 5, port), timeouts).error().message;
      });
  }
  for (const std::string& message : messages)
    EXPECT_EQ(message,
              fmt::format("rendezvous at 127.0.0.1:{}: after 1.5 s ranks 1, 3, 4 of 5 are missing", port));
}

TEST(Control, NobodyThere) {
  const int port = free_port().value();
  const Timeouts timeouts{.pg = Milliseconds(50),
                          .step = Milliseconds(100),
                          .init = Milliseconds(200),
                          .silence = Milliseconds(90)};
  const std::string message = Control::join(world_of(1, 2, port), timeouts).error().message;
  EXPECT_NE(message.find(fmt::format("127.0.0.1:{}: Connection refused", port)), std::string::npos)
      << message;
  EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
  const Socket taken = Socket::listen(0).value();
  const std::string busy = Control::join(world_of(0, 2, taken.local_port()), timeouts).error().message;
  EXPECT_NE(busy.find("Address already in use"), std::string::npos) << busy;
}

/// What two processes that say this of themselves are told.
std::vector<std::string> messages_of(const World& first, const World& second) {
  std::vector<std::string> messages(2);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      messages[static_cast<size_t>(i)] = Control::join(i == 0 ? first : second, quick()).error().message;
    });
  threads.clear();
  return messages;
}

TEST(Control, ContradictionsAreNamed) {
  const int port = free_port().value();
  for (const std::string& message : messages_of(world_of(0, 2, port), world_of(1, 3, port)))
    EXPECT_EQ(message, "rank 1 is one of 3 processes, rank 0 one of 2");
  World twice = world_of(1, 3, free_port().value());
  std::vector<std::string> messages(3);
  {
    std::vector<std::jthread> threads;
    for (const int i : {0, 1, 2})
      threads.emplace_back([&, i] {
        World world = twice;
        world.rank = i == 0 ? 0 : 1;
        messages[static_cast<size_t>(i)] = Control::join(world, quick()).error().message;
      });
  }
  for (const std::string& message : messages)
    EXPECT_EQ(message, "rank 1 came twice: two processes have its number");
}

TEST(Control, StrangersAtThePortAreNoFailure) {
  const int port = free_port().value();
  std::jthread stranger([&] {
    Socket socket = Socket::connect("127.0.0.1", port, Clock::now() + Milliseconds(3000)).value();
    const std::string words = "GET / HTTP/1.1\r\n\r\n";
    (void)socket.send(Bytes(words.begin(), words.end()), Clock::now() + Milliseconds(1000));
    Bytes answer(1);
    EXPECT_FALSE(socket.recv(answer, Clock::now() + Milliseconds(3000)));
  });
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      if (rank == 1) std::this_thread::sleep_for(Milliseconds(200));
      Result<std::unique_ptr<Control>> control = Control::join(world_of(rank, 2, port), quick());
      ASSERT_TRUE(control) << control.error().message;
      EXPECT_TRUE((*control)->leave());
    });
}

TEST(Control, WhoIsGoneIsNamedAtOnce) {
  const int port = free_port().value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Result<std::unique_ptr<Control>> control = Control::join(world_of(rank, 3, port), quick());
      ASSERT_TRUE(control) << control.error().message;
      if (rank == 2) std::this_thread::sleep_for(Milliseconds(100));
      if (rank == 2) return;  // without leave()
      std::string told;
      const int number = (*control)->on_failure([&](const Failure& failure) { told = failure.message; });
      const Clock::time_point start = Clock::now();
      const Result<void> waited = (*control)->barrier("never");
      EXPECT_LT(seconds_since(start), 2);
      EXPECT_EQ(waited.error().message, "rank 2 is gone: its connection closed");
      (*control)->remove_callback(number);
      EXPECT_EQ(told, waited.error().message);
      (*control)->on_failure([&](const Failure& failure) { EXPECT_EQ(failure.rank, 2); });
    });
}

TEST(Control, SaysThatItLivesHoweverMuchItHears) {
  // Rank 0 by hand, which says much more often than it must that it lives.
  Socket listener = Socket::listen(0).value();
  const Timeouts timeouts{.pg = Milliseconds(1000),
                          .step = Milliseconds(6000),
                          .init = Milliseconds(8000),
                          .silence = Milliseconds(500)};
  std::atomic<bool> done = false;
  std::jthread rank_1([&] {
    Result<std::unique_ptr<Control>> control = Control::join(world_of(1, 2, listener.local_port()), timeouts);
    EXPECT_TRUE(control) << control.error().message;
    while (!done) std::this_thread::sleep_for(Milliseconds(1));
  });
  Socket rank_0 = listener.accept(Clock::now() + Milliseconds(3000)).value();
  const Bytes met = encode({.kind = ControlMessage::Kind::kRelease, .name = "rendezvous"});
  const Bytes beat = encode({.kind = ControlMessage::Kind::kBeat});
  ASSERT_TRUE(rank_0.send(met, Clock::now() + Milliseconds(1000)));
  MessageBuffer heard;
  int n_beats = 0;
  for (const Clock::time_point start = Clock::now(); seconds_since(start) < 1;) {
    ASSERT_TRUE(rank_0.send(beat, Clock::now() + Milliseconds(1000)));
    std::this_thread::sleep_for(Milliseconds(5));
    Bytes bytes(1000);
    heard.add(std::span(bytes).first(rank_0.recv_some(bytes).value()));
    for (std::optional<ControlMessage> message; (message = heard.next().value());)
      n_beats += message->kind == ControlMessage::Kind::kBeat ? 1 : 0;
  }
  done = true;
  // One in a fifth of the silence: ten, on a machine that has time.
  EXPECT_GE(n_beats, 3);
  EXPECT_LT(n_beats, 40);
}

TEST(Control, ASlowLinkIsNoSilence) {
  // One message takes three times the silence; who has none to wait for waits at the end of the circuit.
  const Timeouts timeouts{.pg = Milliseconds(1000),
                          .step = Milliseconds(20'000),
                          .init = Milliseconds(30'000),
                          .silence = Milliseconds(800)};
  const LinkOptions link{.bytes_per_second = 20e3, .latency_s = 0.02};
  const auto body = [](Rank& rank) -> Result<void> {
    if (rank.comm->rank() == 0) return rank.comm->send(1, 0, Bytes(50'000));
    if (rank.comm->rank() != 1) return {};
    const Clock::time_point start = Clock::now();
    TRY(rank.comm->recv(0, 0, 50'000));
    return check(seconds_since(start) > 2, "a link that was not slow");
  };
  expect_all_well(run_ranks(4, body, link, timeouts));
}

}  // namespace
}  // namespace forebay::train
