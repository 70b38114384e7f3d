// How many megabytes per second does one thread tokenize, by kind of text?
//
//   build/release/bench/tokenizer_bench                      10 MB each of generated English, code, Japanese
//   and Thai build/release/bench/tokenizer_bench --text a.txt b.txt   10 MB of these files, over and over
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tokenizer/hf_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace forebay {
namespace {

constexpr size_t kTextBytes = 10'000'000;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Words of random letters, frequent ones short and often: the k-th of 50,000 comes about 1/k of the time.
std::string generate(const std::vector<std::string>& letters, size_t longest,
                     const std::vector<std::string>& joints) {
  std::mt19937 random(1);
  auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  std::vector<std::string> words(50'000);
  for (size_t k = 0; k < words.size(); ++k)
    for (size_t n = 1 + random() % (2 + longest * k / words.size()); n > 0; --n) words[k] += pick(letters);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::string text;
  while (text.size() < kTextBytes) {
    auto k = static_cast<size_t>(std::pow(static_cast<double>(words.size()), uniform(random)));
    text += words[k % words.size()] + pick(joints);
  }
  return text;
}

std::vector<std::string> characters(uint32_t first, uint32_t last) {
  std::vector<std::string> all;
  for (uint32_t c = first; c <= last; ++c)
    all.push_back(c < 0x80 ? std::string(1, static_cast<char>(c))
                           : std::string{static_cast<char>(0xE0 | c >> 12),
                                         static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                                         static_cast<char>(0x80 | (c & 0x3F))});
  return all;
}

std::vector<std::pair<std::string, std::string>> generated_texts() {
  auto letters = characters('a', 'z');
  auto kana = characters(0x3041, 0x3093);
  auto kanji = characters(0x4E00, 0x5200);
  kana.insert(kana.end(), kanji.begin(), kanji.end());
  auto thai = characters(0x0E01, 0x0E2E);
  auto thai_marks = characters(0x0E34, 0x0E39);
  thai.insert(thai.end(), thai_marks.begin(), thai_marks.end());
  return {{"english", generate(letters, 10, {" ", " ", " ", " ", ", ", ". ", ".\n\n"})},
          {"code", generate(letters, 8, {" = ", "(", ");\n        ", "->", ", ", "_", "[0] + ", " {\n    "})},
          {"japanese", generate(kana, 4, {"", "", "", "、", "。\n"})},
          {"thai", generate(thai, 8, {"", "", " ", "\n"})}};
}

void encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  size_t n_tokens = 0;
  for (auto _ : state) {
    n_tokens = tokenizer.encode(text).size();
    benchmark::DoNotOptimize(n_tokens);
  }
  state.counters["MB/s"] = benchmark::Counter(static_cast<double>(text.size()) * 1e-6,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/token"] = static_cast<double>(text.size()) / static_cast<double>(n_tokens);
}

std::string repeat_files(int n_paths, char** paths) {
  std::string text, whole;
  for (int i = 0; i < n_paths; ++i) whole += read_file(paths[i]);
  while (!whole.empty() && text.size() < kTextBytes) text += whole.substr(0, kTextBytes - text.size());
  return text;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  using namespace forebay;
  benchmark::Initialize(&argc, argv);
  auto vocabulary =
      vocabulary_from_hf_json(read_file(FOREBAY_SOURCE_DIR "/tests/tokenizer/pebble_tokenizer.json"));
  if (vocabulary) vocabulary->nfc = true;
  auto tokenizer = vocabulary ? Tokenizer::create(*vocabulary) : vocabulary.error();
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::vector<std::pair<std::string, std::string>> texts;
  if (argc > 2 && argv[1] == std::string("--text"))
    texts.emplace_back("files", repeat_files(argc - 2, argv + 2));
  else
    texts = generated_texts();
  for (const auto& [name, text] : texts)
    benchmark::RegisterBenchmark(name.c_str(), [&](benchmark::State& state) {
      encode(state, *tokenizer, text);
    })->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}
