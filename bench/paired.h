/// Two or more ways to do the same, in turn within one process: what the machine does meanwhile falls on all
/// of them.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

namespace forebay::paired {

/// What a stopwatch shows. On a machine that others use too, the processor time of all our threads together
/// says more about the code than the time that passed; it still counts what they cost each other in caches
/// and memory.
enum class Clock { kWall, kProcessor };

inline double seconds_now(Clock clock) {
  timespec now{};
  ::clock_gettime(clock == Clock::kWall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// seconds[arm][round]. Rounds run forwards and backwards in turn (A B C, C B A, ...); one round before them
/// is thrown away.
inline std::vector<std::vector<double>> run(const std::vector<std::function<void()>>& arms, int n_rounds,
                                            Clock clock = Clock::kWall) {
  std::vector<std::vector<double>> seconds(arms.size());
  for (int round = -1; round < n_rounds; ++round)
    for (size_t i = 0; i < arms.size(); ++i) {
      const size_t arm = round % 2 == 0 ? i : arms.size() - 1 - i;
      const double start = seconds_now(clock);
      arms[arm]();
      if (round >= 0) seconds[arm].push_back(seconds_now(clock) - start);
    }
  return seconds;
}

struct Ratio {
  double low, median, high;  // quartiles on both sides
};

/// Of a's time to b's, round by round.
inline Ratio ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> r;
  for (size_t i = 0; i < a.size(); ++i) r.push_back(a[i] / b[i]);
  std::sort(r.begin(), r.end());
  return {r[r.size() / 4], r[r.size() / 2], r[r.size() - 1 - r.size() / 4]};
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// "Q4_K,Q2_0"; names that are no type are left out.
inline std::vector<DType> types_from(const std::string& list) {
  std::vector<DType> types;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (const auto type = dtype_from_name(list.substr(at, end - at))) types.push_back(*type);
    at = end + 1;
  }
  return types;
}

}  // namespace forebay::paired
