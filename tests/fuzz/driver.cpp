/// Runs a fuzz target without libFuzzer: a deterministic mutation loop over its seeds and over the files
/// named on the command line. Whatever ends the process first leaves the input that did it in a file.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "fuzz.h"

// Present when a sanitizer runtime is linked.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

namespace fs = std::filesystem;
using Bytes = std::string;

// What the crash report needs, reachable from a signal handler.
const Bytes* current_input = nullptr;
long current_iteration = 0;
char crash_path[256] = "crash-input";

void save_current_input() {
  if (current_input == nullptr) return;
  if (FILE* file = std::fopen(crash_path, "wb")) {
    std::fwrite(current_input->data(), 1, current_input->size(), file);
    std::fclose(file);
  }
  std::fprintf(stderr, "fuzz: iteration %ld, %zu bytes, input saved as %s\n", current_iteration,
               current_input->size(), crash_path);
  current_input = nullptr;
}

void on_signal(int signal_number) {
  std::fprintf(stderr, "fuzz: %s\n",
               signal_number == SIGALRM ? "one input takes too long" : strsignal(signal_number));
  save_current_input();
  std::signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void catch_crashes() {
  // Its own stack: a parser that recurses too deep has used up the ordinary one.
  static char stack[64 * 1024];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  const bool sanitized = __sanitizer_set_death_callback != nullptr;
  if (sanitized) __sanitizer_set_death_callback(save_current_input);
  for (int signal_number : {SIGABRT, SIGALRM, SIGFPE, SIGILL}) sigaction(signal_number, &action, nullptr);
  // Sanitizers explain a bad access better, and reserve more address space than the limit below.
  if (sanitized) return;
  for (int signal_number : {SIGSEGV, SIGBUS}) sigaction(signal_number, &action, nullptr);
  // A count believed before it is checked shows as a failed allocation, not as a machine out of memory.
  const rlimit limit{4ul << 30, 4ul << 30};
  setrlimit(RLIMIT_AS, &limit);
}

class Mutator {
 public:
  Mutator(const std::vector<Bytes>& corpus, const std::vector<Bytes>& tokens, size_t max_bytes, uint64_t seed)
      : corpus_(corpus), tokens_(tokens), max_bytes_(max_bytes), random_(seed) {}

  Bytes next() {
    Bytes input = corpus_[below(corpus_.size())];
    const size_t n_mutations = 1 + below(6);
    for (size_t i = 0; i < n_mutations; ++i) mutate(input);
    if (input.size() > max_bytes_) input.resize(max_bytes_);
    return input;
  }

 private:
  // Not std::uniform_int_distribution: its results differ between standard libraries.
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void mutate(Bytes& input) {
    switch (below(10)) {
      case 0:
        flip_bit(input);
        break;
      case 1:
        set_byte(input);
        break;
      case 2:
      case 3:
        set_integer(input);
        break;
      case 4:
        insert_bytes(input);
        break;
      case 5:
        erase_range(input);
        break;
      case 6:
        repeat_range(input);
        break;
      case 7:
        insert_token(input);
        break;
      case 8:
        splice(input);
        break;
      default:
        truncate(input);
        break;
    }
  }

  void flip_bit(Bytes& input) {
    if (input.empty()) return;
    input[below(input.size())] ^= static_cast<char>(1 << below(8));
  }

  void set_byte(Bytes& input) {
    if (input.empty()) return;
    input[below(input.size())] = static_cast<char>(random_());
  }

  /// Overwrites 1..8 bytes, little-endian, with a limit value, a small one, or the old one plus a little.
  void set_integer(Bytes& input) {
    static constexpr uint64_t kLimits[] = {0,
                                           1,
                                           0x7f,
                                           0x80,
                                           0xff,
                                           0x7fff,
                                           0xffff,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           1ull << 32,
                                           1ull << 62,
                                           (1ull << 63) - 1,
                                           1ull << 63,
                                           UINT64_MAX - 31,
                                           UINT64_MAX};
    const size_t width = size_t{1} << below(4);
    if (input.size() < width) return;
    const size_t at = below(input.size() - width + 1);
    uint64_t value = 0;
    std::memcpy(&value, input.data() + at, width);
    switch (below(3)) {
      case 0:
        value = kLimits[below(std::size(kLimits))];
        break;
      case 1:
        value = below(64);
        break;
      default:
        value += below(33) - 16;
        break;
    }
    std::memcpy(input.data() + at, &value, width);
  }

  void insert_bytes(Bytes& input) {
    const Bytes noise(1 + below(8), static_cast<char>(random_()));
    input.insert(below(input.size() + 1), noise);
  }

  void erase_range(Bytes& input) {
    const size_t at = below(input.size());
    if (!input.empty()) input.erase(at, 1 + below(std::min<size_t>(input.size() - at, 32)));
  }

  void repeat_range(Bytes& input) {
    if (input.empty() || input.size() > max_bytes_) return;
    const size_t at = below(input.size());
    const Bytes piece = input.substr(at, 1 + below(64));
    const size_t n_times = below(8) == 0 ? 1 + below(200) : 1;
    Bytes repeated;
    for (size_t i = 0; i < n_times; ++i) repeated += piece;
    input.insert(at, repeated);
  }

  void insert_token(Bytes& input) {
    if (tokens_.empty()) return;
    input.insert(below(input.size() + 1), tokens_[below(tokens_.size())]);
  }

  void splice(Bytes& input) {
    const Bytes& other = corpus_[below(corpus_.size())];
    input.resize(below(input.size() + 1));
    input += other.substr(below(other.size() + 1));
  }

  void truncate(Bytes& input) { input.resize(below(input.size() + 1)); }

  const std::vector<Bytes>& corpus_;
  const std::vector<Bytes>& tokens_;
  const size_t max_bytes_;
  std::mt19937_64 random_;
};

Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fuzz: cannot read %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_inputs(const fs::path& path, std::vector<Bytes>& inputs) {
  if (!fs::is_directory(path)) return inputs.push_back(read_bytes(path));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) inputs.push_back(read_bytes(file));
}

void write_seeds(const std::vector<Bytes>& inputs, const fs::path& directory) {
  fs::create_directories(directory);
  for (size_t i = 0; i < inputs.size(); ++i)
    std::ofstream(directory / ("seed-" + std::to_string(i)), std::ios::binary) << inputs[i];
}

void run(const Bytes& input) {
  current_input = &input;
  alarm(30);
  // A copy of exactly this size on the heap, so that a read past its end is one a sanitizer sees.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  current_input = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  long n_iterations = 20000;
  uint64_t seed = 1;
  size_t max_bytes = 64 * 1024;
  bool replay = false;
  std::string seeds_directory;
  FuzzSeeds seeds = fuzz_seeds();
  std::vector<Bytes> named;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] {
      if (++i < argc) return argv[i];
      std::fprintf(stderr, "fuzz: %s needs a value\n", argv[i - 1]);
      std::exit(2);
    };
    if (option == "--iterations")
      n_iterations = std::strtol(value(), nullptr, 10);
    else if (option == "--seed")
      seed = std::strtoull(value(), nullptr, 10);
    else if (option == "--max-bytes")
      max_bytes = std::strtoull(value(), nullptr, 10);
    else if (option == "--write-seeds")
      seeds_directory = value();
    else if (option == "--replay")
      replay = true;
    else if (option.starts_with("--")) {
      std::fprintf(stderr,
                   "fuzz: unknown option %s; known: --iterations N --seed S --max-bytes N --write-seeds DIR "
                   "--replay FILE...\n",
                   argv[i]);
      return 2;
    } else
      add_inputs(argv[i], named);
  }
  if (!seeds_directory.empty()) {
    write_seeds(seeds.inputs, seeds_directory);
    return 0;
  }
  std::snprintf(crash_path, sizeof crash_path, "crash-%s", fs::path(argv[0]).filename().c_str());
  catch_crashes();
  if (replay) {
    for (const Bytes& input : named) run(input);
    std::printf("fuzz: %zu inputs replayed\n", named.size());
    return 0;
  }
  std::vector<Bytes> corpus = std::move(seeds.inputs);
  corpus.insert(corpus.end(), named.begin(), named.end());
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: no inputs to start from\n");
    return 2;
  }
  for (const Bytes& input : corpus) run(input);
  Mutator mutator(corpus, seeds.tokens, max_bytes, seed);
  for (current_iteration = 1; current_iteration <= n_iterations; ++current_iteration) run(mutator.next());
  std::printf("fuzz: %zu seeds and %ld mutations (--seed %lu), nothing found\n", corpus.size(), n_iterations,
              static_cast<unsigned long>(seed));
  return 0;
}
