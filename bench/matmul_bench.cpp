// How fast are matrix products with each block format, and how near to what memory can give? For every type
// three arms in turn over the same bytes: reading them, int8 activations, exact activations.
//   matmul_bench [--types Q4_K,Q2_0] [--k 2048] [--rows 1] [--mib 1024] [--threads 2] [--rounds 9]
//   [--no-exact] [--no-vnni] [--processor-time]
// --rows is the number of activation rows, --mib the size of the matrix. --processor-time divides by the time
// that the threads ran instead of the time that passed, for a machine with other work.
#include <cstring>
#include <iostream>
#include <random>
#include <string>

#include <fmt/format.h>

#include "ceilings.h"
#include "kernels/matmul.h"
#include "paired.h"

namespace forebay {
namespace {

struct Options {
  std::vector<DType> types = {DType::kQ4_K, DType::kQ2_0, DType::kQ8_0, DType::kIQ2_XS};
  int64_t k = 2048, rows = 1, mib = 1024;
  int threads = 0, rounds = 9;
  bool exact = true, vnni = true;
  paired::Clock clock = paired::Clock::kWall;
};

/// Blocks of random codes whose half-precision fields, wherever they are, are ordinary numbers.
std::vector<std::byte> random_bytes(size_t n) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(n);
  constexpr size_t kPattern = 1 << 20;
  for (size_t i = 0; i < std::min(n, kPattern); ++i) bytes[i] = static_cast<std::byte>((random() & 0x3b) | 4);
  for (size_t i = kPattern; i < n; i += kPattern)
    std::memcpy(&bytes[i], bytes.data(), std::min(kPattern, n - i));
  return bytes;
}

void measure(const Options& o, DType type, ThreadPool& pool, std::vector<std::byte>& bytes) {
  const int64_t stride = row_bytes(type, o.k);
  if (type ==
      DType::kMXFP4)  // its scale is a whole exponent, and random ones make sums too small to be normal
    for (size_t block = 0; block < bytes.size(); block += 17) bytes[block] = std::byte{120};
  const MatrixView w{bytes.data(), type, static_cast<int64_t>(bytes.size()) / stride, o.k, stride};
  std::vector<float> x(static_cast<size_t>(o.rows * o.k)), y(static_cast<size_t>(o.rows * w.n_rows));
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  KernelContext exact(pool, best_isa()), rounded(pool, best_isa());
  rounded.set_activations(Activations::kInt8);
  rounded.set_use_vnni(o.vnni);

  std::vector<std::function<void()>> arms = {
      [&] { ceilings::read_all(pool, bytes); },
      [&] {
        matmul(rounded, w, {x.data(), o.rows, o.k}, {y.data(), o.rows, w.n_rows});
      }};
  if (o.exact)
    arms.push_back([&] { matmul(exact, w, {x.data(), o.rows, o.k}, {y.data(), o.rows, w.n_rows}); });
  const auto seconds = paired::run(arms, o.rounds, o.clock);
  const double at_once = o.clock == paired::Clock::kWall ? 1 : pool.n_threads();
  const auto gb = [&](size_t arm) {
    return static_cast<double>(bytes.size()) / paired::median(seconds[arm]) * 1e-9 * at_once;
  };
  const double macs = static_cast<double>(w.n_rows) * static_cast<double>(o.k * o.rows);
  const paired::Ratio share = paired::ratio(seconds[0], seconds[1]);
  fmt::print(
      "{:8} T={:<4} read {:6.2f} GB/s   int8 {:6.2f} GB/s = {:.2f} [{:.2f}, {:.2f}] of it, {:6.1f} GMAC/s",
      name_of(type), o.rows, gb(0), gb(1), share.median, share.low, share.high,
      macs / paired::median(seconds[1]) * 1e-9 * at_once);
  if (o.exact) {
    const paired::Ratio gain = paired::ratio(seconds[2], seconds[1]);
    fmt::print("   exact {:6.2f} GB/s, int8 is {:.2f} [{:.2f}, {:.2f}] times as fast", gb(2), gain.median,
               gain.low, gain.high);
  }
  fmt::print("\n");
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--no-exact") {
      o.exact = false;
    } else if (flag == "--no-vnni") {
      o.vnni = false;
    } else if (flag == "--processor-time") {
      o.clock = paired::Clock::kProcessor;
    } else if (i + 1 == argc) {
      return false;
    } else if (const std::string value = argv[++i]; flag == "--types") {
      o.types = paired::types_from(value);
    } else if (const int64_t number = std::atoll(value.c_str()); flag == "--k") {
      o.k = number;
    } else if (flag == "--rows") {
      o.rows = number;
    } else if (flag == "--mib") {
      o.mib = number;
    } else if (flag == "--threads") {
      o.threads = static_cast<int>(number);
    } else if (flag == "--rounds") {
      o.rounds = static_cast<int>(number);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::Options options;
  if (!forebay::parse(argc, argv, options)) {
    std::cerr << "usage: matmul_bench [--types Q4_K,Q2_0] [--k 2048] [--rows 1] [--mib 1024] [--threads 2] "
                 "[--rounds 9] "
                 "[--no-exact] [--no-vnni] [--processor-time]\n";
    return 2;
  }
  forebay::ThreadPool pool(options.threads);
  auto bytes = forebay::random_bytes(static_cast<size_t>(options.mib) << 20);
  fmt::print("{} threads, {} MiB, K = {}\n", pool.n_threads(), options.mib, options.k);
  for (const forebay::DType type : options.types) forebay::measure(options, type, pool, bytes);
}
