// Is decoding as fast deep in a context as at its start? For every depth an arm: a sequence whose rows are
// there already, made up, and then single tokens through the whole model.
//   attention_bench -m MODEL.gguf [--depths 1024,8192,32768,65536] [--kv int8,f32] [--steps 8] [--rounds 15]
//   [--threads 2] [--processor-time]
// Ratios are to the second depth. For the sizes of a model of one's choice: forebay synth.
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>

#include "forebay/engine.h"

#include "model/model.h"
#include "paired.h"

namespace forebay {
namespace {

struct Options {
  std::string model;
  std::vector<int64_t> depths = {1024, 8192, 32768, 65536};
  std::vector<KvType> kv = {KvType::kInt8, KvType::kF32};
  int steps = 8, rounds = 15, threads = 0;
  paired::Clock clock = paired::Clock::kWall;
};

/// A sequence of `depth` cells whose keys, values and index keys are random.
SequenceState filled(Model& model, int64_t depth, int64_t context) {
  Result<SequenceState> made = model.new_state(context);
  if (!made) throw std::runtime_error(made.error().message);
  SequenceState state = std::move(made).value();
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  constexpr int64_t kRows = 256;
  for (int block = 0; block < model.config().n_blocks; ++block) {
    AttentionState& a = state.attention(block);
    if (a.keys.empty()) continue;
    for (const KvRows* rows : {&a.keys, &a.values}) {
      std::vector<float> x(static_cast<size_t>(kRows * rows->width()));
      for (float& v : x) v = normal(random);
      for (int64_t cell = 0; cell + kRows <= depth; cell += kRows)
        write_rows(best_isa(), *rows, cell, {x.data(), kRows, rows->width()});
    }
    for (float& v : a.pooled) v = normal(random);
  }
  return state;
}

void measure(const Options& o, KvType kv) {
  EngineOptions options;
  options.model = o.model;
  options.threads = o.threads;
  options.int8_activations = true;
  options.kv = kv;
  Result<Engine> opened = Engine::open(options);
  if (!opened) throw std::runtime_error(opened.error().message);
  Model& model = opened->model();
  std::vector<SequenceState> states;
  for (const int64_t depth : o.depths) states.push_back(filled(model, depth, depth + 64));
  std::vector<Snapshot> starts;
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].adopt(std::vector<int32_t>(static_cast<size_t>(o.depths[i]), 1), 0);
    starts.push_back(states[i].snapshot());
  }
  std::vector<std::function<void()>> arms;
  for (size_t i = 0; i < states.size(); ++i)
    arms.emplace_back([&, i] {
      if (Result<void> back = states[i].restore(starts[i]); !back)
        throw std::runtime_error(back.error().message);
      std::mt19937 random(3);
      for (int step = 0; step < o.steps; ++step) {
        const auto token = static_cast<int32_t>(random() % static_cast<uint32_t>(model.config().n_vocab));
        const Span span{&states[i], {&token, 1}, LogitRows::kLast};
        if (Result<ForwardOutput> out = model.forward({&span, 1}); !out)
          throw std::runtime_error(out.error().message);
      }
    });
  const auto seconds = paired::run(arms, o.rounds, o.clock);
  const double at_once = o.clock == paired::Clock::kWall ? 1 : opened->info().threads;
  for (size_t i = 0; i < arms.size(); ++i) {
    const paired::Ratio ratio = paired::ratio(seconds[i], seconds[std::min<size_t>(1, arms.size() - 1)]);
    fmt::print("{:5} depth {:>6}   {:>9.3f} ms a token   {:.2f} [{:.2f}, {:.2f}] times that at {}\n",
               name_of(kv), o.depths[i], 1e3 * paired::median(seconds[i]) / o.steps / at_once, ratio.median,
               ratio.low, ratio.high, o.depths[std::min<size_t>(1, arms.size() - 1)]);
  }
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--processor-time") {
      o.clock = paired::Clock::kProcessor;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (flag == "-m") {
      o.model = value;
    } else if (flag == "--depths") {
      o.depths.clear();
      for (const std::string& part : parts_of(value)) o.depths.push_back(std::atoll(part.c_str()));
    } else if (flag == "--kv") {
      o.kv.clear();
      for (const std::string& part : parts_of(value))
        if (const auto type = kv_type_from_name(part)) o.kv.push_back(*type);
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
  return !o.model.empty() && !o.depths.empty() && o.steps > 0 && o.steps < 60;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::Options options;
  if (!forebay::parse(argc, argv, options)) {
    std::cerr << "usage: attention_bench -m MODEL.gguf [--depths 1024,8192,32768,65536] [--kv int8,f32] "
                 "[--steps 8] "
                 "[--rounds 15] [--threads N] [--processor-time]\n";
    return 2;
  }
  try {
    for (const forebay::KvType kv : options.kv) forebay::measure(options, kv);
  } catch (const std::exception& error) {
    std::cerr << "attention_bench: " << error.what() << "\n";
    return 1;
  }
}
