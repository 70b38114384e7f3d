// One process of a small ring that passes messages round and adds numbers up, and may die on the way:
// comm_rank RANK SIZE PORT ROUNDS DIE_RANK DIE_AT HOW. It dies at the DIE_AT-th of its calls: "kill" by a
// signal, "exit" without a word, "stop" by standing still. Prints what ended it; exit code 3 for an error.
#include <csignal>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "train/comm/comm.h"

namespace forebay::train {
namespace {

struct Fate {
  int at = -1;
  std::string how;
  int n_calls = 0;

  void call() {
    if (n_calls++ != at) return;
    if (how == "kill") ::raise(SIGKILL);
    if (how == "stop") ::raise(SIGSTOP);
    ::_exit(9);
  }
};

Result<void> run(const World& world, int n_rounds, Fate fate) {
  const Timeouts timeouts{.pg = Milliseconds(4000),
                          .step = Milliseconds(20000),
                          .init = Milliseconds(30000),
                          .silence = Milliseconds(fate.how == "stop" ? 1500 : 10000)};
  fate.call();
  const std::unique_ptr<Control> control = TRY(Control::join(world, timeouts));
  fate.call();
  std::unique_ptr<Transport> transport = TRY(make_tcp_transport(*control, "pipe"));
  Comm comm("pipe", *control, std::move(transport), {});
  const int next = (world.rank + 1) % world.size, previous = (world.rank + world.size - 1) % world.size;
  for (int round = 0; round < n_rounds; ++round) {
    fate.call();
    TRY(comm.send(next, static_cast<uint64_t>(round), Bytes(1000)));
    fate.call();
    TRY(comm.recv(previous, static_cast<uint64_t>(round), 1000));
    fate.call();
    std::vector<float> values = {1};
    TRY(comm.allreduce_f32(values));
  }
  fate.call();
  TRY(comm.shutdown());
  fate.call();
  return control->leave();
}

}  // namespace
}  // namespace forebay::train

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  forebay::World world;
  world.rank = std::atoi(argv[1]);
  world.size = std::atoi(argv[2]);
  world.port = std::atoi(argv[3]);
  const int at = std::atoi(argv[5]) == world.rank ? std::atoi(argv[6]) : -1;
  const forebay::Result<void> done =
      forebay::train::run(world, std::atoi(argv[4]), {.at = at, .how = argv[7]});
  if (done) return 0;
  fmt::print("{}\n", done.error().message);
  return 3;
}
