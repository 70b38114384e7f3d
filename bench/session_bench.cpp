// How fast is a saved state loaded, beside what the disk gives? A state of Flash-Next's shape (36 gated-delta
// blocks, 12 sparse-attention blocks, int8 K/V), no weights: 1K, 8K and 32K cells. Loads and plain direct
// reads of the same file by as many threads are interleaved, A B B A; the first of each is not counted.
//
//   session_bench DIRECTORY [threads]     a directory on the disk in question
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/storage.h"
#include "model/state.h"
#include "session/pieces.h"
#include "session/session_file.h"

namespace forebay {
namespace {

ModelConfig flash_next() {
  ModelConfig c;
  c.n_blocks = 48;
  c.d_model = 2560;
  c.streams.n_streams = 4;
  c.attention.shape = {.n_heads = 24, .n_kv_heads = 2, .head_dim = 256};
  c.indexer = {.n_heads = 4, .head_dim = 128, .top_k_cells = 2048, .block_cells = 4};
  c.gated_delta.shape = {.n_k_heads = 16, .n_v_heads = 48, .k_dim = 128, .v_dim = 128};
  c.gated_delta.conv_kernel = 4;
  c.ngram.block = 1;
  c.ngram.ngram_size = 3;
  c.ngram.conv_kernel = 4;
  for (int i = 0; i < c.n_blocks; ++i) {
    const bool attention = i % 4 == 3;
    c.mixers.push_back(attention ? MixerKind::kAttention : MixerKind::kGatedDelta);
    c.block_cells.push_back(attention ? c.indexer.block_cells : 0);
  }
  return c;
}

double seconds(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}
void must(Result<void> result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Reads the file past the page cache and does nothing with it.
void read_plain(Storage& storage, const Path& path, int n_threads) {
  const std::unique_ptr<ReadableFile> file = must(storage.open_direct(path));
  const uint64_t size = file->size();
  must(for_each_piece((size + kPieceBytes - 1) / kPieceBytes, n_threads,
                      [&](size_t i, std::span<std::byte> block) -> Result<void> {
                        const uint64_t first = i * kPieceBytes;
                        TRY(file->read_around(first, std::min(kPieceBytes, size - first), block));
                        return {};
                      }));
}

void measure(Storage& storage, const Path& directory, int64_t n_cells, int n_threads) {
  MemoryBudget budget;
  SequenceState state =
      must(SequenceState::create(flash_next(), n_cells + 256, /*with_mtp=*/false, KvType::kInt8, budget));
  uint64_t x = 1;
  for (const StateSection& s : state.sections())
    for (size_t i = 0; i + 8 <= s.bytes.size(); i += 8) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(s.bytes.data() + i, &x, 8);
    }
  const std::vector<int32_t> tokens(static_cast<size_t>(n_cells), 7);
  state.adopt(tokens, 0);
  const Path path = directory / "bench.session";
  const std::vector<std::string> facts = {"model=bench"};
  uint64_t bytes = 0;
  const double write_s = seconds([&] {
    bytes = must(write_session(storage, path, {&state, nullptr, tokens, {}},
                               {.facts = facts, .n_threads = n_threads}))
                .file_bytes;
  });
  std::vector<float> logits;
  std::vector<double> loads, reads, ratios;
  const auto load = [&] {
    return seconds([&] {
      SessionReader reader = must(SessionReader::open(storage, path));
      must(reader.load(state, facts, logits, n_threads));
    });
  };
  const auto read = [&] { return seconds([&] { read_plain(storage, path, n_threads); }); };
  for (int round = 0; round < 7; ++round) {
    const double a1 = read(), b1 = load(), b2 = load(), a2 = read();
    if (round == 0) continue;
    for (double s : {a1, a2}) reads.push_back(s);
    for (double s : {b1, b2}) loads.push_back(s);
    ratios.push_back((a1 + a2) / (b1 + b2));
  }
  must(storage.remove(path));
  const double mib = static_cast<double>(bytes) / (1 << 20), gb = static_cast<double>(bytes) / 1e9;
  std::printf(
      "%6d cells  %7.1f MiB  load %6.1f ms (%.2f GB/s)  plain reads %6.1f ms (%.2f GB/s)  ratio %.3f (%.3f - "
      "%.3f)"
      "  save %.0f ms\n",
      static_cast<int>(n_cells), mib, 1e3 * median(loads), gb / median(loads), 1e3 * median(reads),
      gb / median(reads), median(ratios), *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()), 1e3 * write_s);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  using namespace forebay;
  if (argc < 2) {
    std::fprintf(stderr, "usage: session_bench DIRECTORY [threads]\n");
    return 2;
  }
  const auto storage = make_posix_storage();
  const int n_threads = argc > 2 ? std::atoi(argv[2]) : kSessionThreads;
  std::printf("%d threads\n", n_threads);
  for (int64_t n_cells : {1024, 8192, 32768}) measure(*storage, argv[1], n_cells, n_threads);
}
