// How near does decoding a whole model come to reading its bytes? Every arm opens the model in its own way,
// all within one process; then each decodes a few tokens in turn, and memory is read in turn with them, in
// pages of 4 KiB and of 2 MiB.
//   decode_bench -m MODEL.gguf [--arms resident:copy,resident:map,mmap:map] [--steps 16] [--rounds 9]
//   [--threads N]
// An arm is where experts are and where the trunk is. Slots are filled first, so that nothing is read from
// the disk while time is taken. Bytes of a token are the trunk without the embeddings, and the experts it
// uses.
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>

#include "forebay/engine.h"

#include "ceilings.h"
#include "model/model.h"
#include "paired.h"
#include "plan/model_footprint.h"
#include "tensor/buffer.h"

namespace forebay {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> arms = {"resident:map", "resident:copy", "mmap:map"};
  int steps = 16, rounds = 9, threads = 0;
};

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

struct Arm {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
};

int32_t random_token(std::mt19937& random, const Engine& engine) {
  return static_cast<int32_t>(random() % static_cast<uint32_t>(engine.info().n_vocab));
}

Arm open(const Options& o, const std::string& arm) {
  EngineOptions options;
  options.model = o.model;
  options.threads = o.threads;
  options.int8_activations = true;
  options.context = 1024;
  options.chunk = 256;
  const size_t colon = std::min(arm.find(':'), arm.size() - 1);
  options.experts = expert_placement_from_name(arm.substr(0, colon));
  options.copy_trunk = arm.substr(colon + 1) == "copy";
  Arm made;
  made.engine = std::make_unique<Engine>(value_of(Engine::open(options)));
  made.session = std::make_unique<Session>(value_of(made.engine->new_session()));
  std::mt19937 random(1);
  std::vector<int32_t> prompt(512);
  for (int i = 0; i < 3; ++i) {
    for (int32_t& id : prompt) id = random_token(random, *made.engine);
    value_of(made.session->sync(prompt));
  }
  return made;
}

void measure(const Options& o) {
  std::vector<Arm> arms;
  for (const std::string& arm : o.arms) arms.push_back(open(o, arm));
  const ModelFootprint model = value_of(ModelFootprint::from_gguf(arms[0].engine->file(), nullptr, false));
  const uint64_t token_bytes = model.trunk_read_bytes + model.expert_bytes_per_token();
  MemoryBudget budget;
  constexpr uint64_t kReadBytes = uint64_t{1} << 29;
  const Buffer usual = value_of(Buffer::allocate(budget, kReadBytes, "read"));
  const Buffer huge = value_of(Buffer::allocate(budget, kReadBytes, "read", PageSize::kHuge));
  for (const Buffer* read : {&usual, &huge}) std::memset(read->data(), 1, kReadBytes);
  ThreadPool pool(o.threads);

  // For every arm: a few tokens at the beginning of a context, then the two ways of reading.
  std::vector<std::function<void()>> turns;
  for (Arm& arm : arms) {
    turns.emplace_back([&] {
      const int32_t first = 1;
      value_of(arm.session->sync({&first, 1}));
      std::mt19937 random(3);
      for (int step = 1; step < o.steps; ++step)
        if (Result<void> done = arm.session->append(random_token(random, *arm.engine)); !done)
          throw std::runtime_error(done.error().message);
    });
    for (const Buffer* read : {&usual, &huge})
      turns.emplace_back([&pool, read] { ceilings::read_all(pool, read->as<std::byte>()); });
  }
  const auto seconds = paired::run(turns, o.rounds);
  const double scale = static_cast<double>(token_bytes) * o.steps / static_cast<double>(kReadBytes);
  const auto text = [](const paired::Ratio& r) {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}]", r.median, r.low, r.high);
  };
  for (size_t i = 0; i < arms.size(); ++i) {
    const std::vector<double>& decode = seconds[3 * i];
    // What reading those bytes would take, beside what the tokens took.
    const auto share = [&](size_t way) {
      std::vector<double> reading = seconds[3 * i + way];
      for (double& s : reading) s *= scale;
      return text(paired::ratio(reading, decode));
    };
    const double token = paired::median(decode) / o.steps;
    fmt::print("{:<14} {:6.2f} tokens/s, {:5.2f} GB/s, of reading in 4 KiB {}, in 2 MiB {}; {} times {}\n",
               o.arms[i], 1 / token, 1e-9 * static_cast<double>(token_bytes) / token, share(1), share(2),
               text(paired::ratio(seconds[0], decode)), o.arms[0]);
  }
  fmt::print("{} MB a token\n", token_bytes / 1000000);
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "-m") {
      o.model = value;
    } else if (flag == "--arms") {
      o.arms.clear();
      for (size_t at = 0; at < value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        o.arms.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else if (flag == "--steps") {
      o.steps = std::atoi(value.c_str());
    } else if (flag == "--rounds") {
      o.rounds = std::atoi(value.c_str());
    } else if (flag == "--threads") {
      o.threads = std::atoi(value.c_str());
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !o.model.empty() && o.steps > 0 && o.rounds > 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::Options options;
  if (!forebay::parse(argc, argv, options)) {
    std::cerr << "usage: decode_bench -m MODEL.gguf [--arms PLACEMENT:TRUNK,...] [--steps 16] [--rounds 9] "
                 "[--threads N]\n";
    return 2;
  }
  try {
    forebay::measure(options);
  } catch (const std::exception& error) {
    std::cerr << "decode_bench: " << error.what() << "\n";
    return 1;
  }
}
