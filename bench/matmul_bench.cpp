// How fast are matrix products with each block format, and how near to what memory can give? For every type
// three arms in turn over the same bytes: reading them, int8 activations, exact activations.
//   matmul_bench [--types Q4_K,Q2_0] [--k 2048] [--rows 1] [--mib 1024] [--threads 2] [--rounds 9]
//   [--no-exact] [--no-vnni] [--huge-pages] [--processor-time]
// --rows is the number of activation rows, --mib the size of the matrix. --processor-time divides by the time
// that the threads ran instead of the time that passed, for a machine with other work. --huge-pages compares
// the same product over a copy of the matrix in huge pages.
#include <cstring>
#include <iostream>
#include <random>
#include <span>
#include <string>

#include <fmt/format.h>
#include <sys/mman.h>

#include "ceilings.h"
#include "kernels/matmul.h"
#include "paired.h"

namespace forebay {
namespace {

struct Options {
  std::vector<DType> types = {DType::kQ4_K, DType::kQ2_0, DType::kQ8_0, DType::kIQ2_XS};
  int64_t k = 2048, rows = 1, mib = 1024;
  int threads = 0, rounds = 9;
  bool exact = true, vnni = true, huge = false;
  paired::Clock clock = paired::Clock::kWall;
};

/// Blocks of random codes whose half-precision fields, wherever they are, are ordinary numbers.
void fill(std::span<std::byte> bytes) {
  std::mt19937 random(1);
  const size_t n = bytes.size();
  constexpr size_t kPattern = 1 << 20;
  for (size_t i = 0; i < std::min(n, kPattern); ++i) bytes[i] = static_cast<std::byte>((random() & 0x3b) | 4);
  for (size_t i = kPattern; i < n; i += kPattern)
    std::memcpy(&bytes[i], bytes.data(), std::min(kPattern, n - i));
}

/// Memory in pages of the kind asked for, as far as the system has them.
std::span<std::byte> pages(size_t n, bool huge) {
  constexpr size_t kHuge = size_t{2} << 20;
  n = (n + kHuge - 1) / kHuge * kHuge;
  void* raw = ::mmap(nullptr, n + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(raw) + kHuge - 1) / kHuge * kHuge);
  ::madvise(at, n, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return {at, n};
}

/// `copy`: room for the same bytes in huge pages, or nothing.
void measure(const Options& o, DType type, ThreadPool& pool, std::span<std::byte> bytes,
             std::span<std::byte> copy) {
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
  if (!copy.empty()) {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    MatrixView in_huge_pages = w;
    in_huge_pages.data = copy.data();
    arms.push_back([&, in_huge_pages] {
      matmul(rounded, in_huge_pages, {x.data(), o.rows, o.k}, {y.data(), o.rows, w.n_rows});
    });
  }
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
  if (!copy.empty()) {
    const paired::Ratio gain = paired::ratio(seconds[1], seconds.back());
    fmt::print("   huge pages are {:.3f} [{:.3f}, {:.3f}] times as fast", gain.median, gain.low, gain.high);
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
    } else if (flag == "--huge-pages") {
      o.huge = true;
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
                 "[--no-exact] [--no-vnni] [--huge-pages] [--processor-time]\n";
    return 2;
  }
  forebay::ThreadPool pool(options.threads);
  const size_t n_bytes = static_cast<size_t>(options.mib) << 20;
  const std::span<std::byte> bytes = forebay::pages(n_bytes, false).first(n_bytes);
  std::span<std::byte> copy;
  if (options.huge) copy = forebay::pages(n_bytes, true).first(n_bytes);
  forebay::fill(bytes);
  fmt::print("{} threads, {} MiB, K = {}\n", pool.n_threads(), options.mib, options.k);
  for (const forebay::DType type : options.types) forebay::measure(options, type, pool, bytes, copy);
}
