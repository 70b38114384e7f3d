// Does memory stay where it is while requests come and go? Many short conversations in one process, experts
// in a small arena; the most that the process owned is printed as it goes on. Exits with 1 when that grew
// after the warm-up.
//   soak_bench -m MODEL.gguf [--requests 2000] [--tokens 12] [--budget 40M] [--threads 2]
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include <fmt/format.h>

#include "forebay/engine.h"

#include "core/format.h"
#include "core/memory_info.h"
#include "core/parse.h"

namespace forebay {
namespace {

struct Options {
  std::string model;
  uint64_t budget = uint64_t{40} << 20;
  int requests = 2000, tokens = 12, threads = 2;
};

/// A prompt of 8 to 40 tokens, sometimes one that goes on from the one before.
std::vector<int32_t> next_prompt(std::mt19937_64& random, int n_vocab, std::vector<int32_t> before) {
  if (random() % 3 != 0 || before.size() > 200) before.clear();
  for (uint64_t left = 8 + random() % 33; left > 0; --left)
    before.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(n_vocab * 3 / 4)));
  return before;
}

int soak(const Options& o) {
  EngineOptions options;
  options.model = o.model;
  options.threads = o.threads;
  options.context = 1024;
  options.int8_activations = true;
  options.experts = ExpertPlacement::kStreamed;
  options.budget_bytes = o.budget;
  Result<Engine> engine = Engine::open(options);
  if (!engine) throw std::runtime_error(engine.error().message);
  std::mt19937_64 random(1);
  const int warm_up = o.requests / 10, step = std::max(1, o.requests / 10);
  // Long conversations come by chance: what is compared is the most of many requests.
  uint64_t settled = 0, most = 0, most_of_step = 0;
  fmt::print("{:>9} {:>14} {:>14} {:>14} {:>14} {:>10}\n", "requests", "most private", "n-gram rows",
             "experts", "evictions", "hits");
  std::optional<Session> session;
  std::vector<int32_t> prompt;
  for (int r = 1; r <= o.requests; ++r) {
    // A session serves a few requests; then another takes its place.
    if (r % 7 == 1) {
      session.reset();
      session.emplace(engine->new_session().value());
    }
    prompt = next_prompt(random, engine->info().n_vocab, std::move(prompt));
    GenerateOptions answer;
    answer.max_tokens = o.tokens;
    answer.ignore_stop_tokens = true;
    answer.sampling.seed = static_cast<uint64_t>(r);
    const auto report = session->generate(prompt, answer, [](const GeneratedToken&) { return true; });
    if (!report) throw std::runtime_error(report.error().message);
    const uint64_t own = process_memory().anonymous;
    uint64_t& largest = r <= warm_up ? settled : most;
    largest = std::max(largest, own);
    most_of_step = std::max(most_of_step, own);
    if (r % step != 0) continue;
    const ExpertCacheStats s = *engine->expert_stats();
    fmt::print(
        "{:>9} {:>14} {:>14} {:>14} {:>14} {:>8.1f} %\n", r, most_of_step, engine->ngram_bytes(),
        s.resident_bytes, s.n_evictions,
        100 * static_cast<double>(s.n_hits) / static_cast<double>(s.n_hits + s.n_misses + s.n_prefetch_used));
    std::fflush(stdout);
    most_of_step = 0;
  }
  // Threads' stacks and the heap's own pieces move a little.
  const uint64_t allowed = settled + settled / 100 + (1 << 20);
  fmt::print("in the first {} requests {} at most, {} later\n", warm_up, human_bytes(settled),
             human_bytes(most));
  return most <= allowed ? 0 : 1;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) try {
  forebay::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "-m")
      options.model = value;
    else if (flag == "--requests")
      options.requests = std::stoi(value);
    else if (flag == "--tokens")
      options.tokens = std::stoi(value);
    else if (flag == "--threads")
      options.threads = std::stoi(value);
    else if (flag == "--budget")
      options.budget = forebay::parse_bytes(value).value();
    else
      throw std::runtime_error("unknown flag " + flag);
  }
  return forebay::soak(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "soak_bench: {}\n", error.what());
  return 1;
}
