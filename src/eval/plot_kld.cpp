#include <algorithm>

#include <fmt/format.h>

#include "core/gnuplot.h"
#include "eval/kld.h"

namespace forebay {
namespace {

constexpr double kSmallest = 1e-8;  // what is below is drawn there: the axis is logarithmic

/// The share of positions at or above each of some divergences, from the smallest to the largest.
std::string exceedance(const std::vector<double>& sorted) {
  constexpr size_t kPoints = 400;
  const size_t n = sorted.size(), step = std::max<size_t>(1, n / kPoints);
  std::string out;
  const auto point = [&](size_t i) {
    out += fmt::format("{:.6g} {:.6g}\n", std::max(sorted[i], kSmallest),
                       static_cast<double>(n - i) / static_cast<double>(n));
  };
  // The tail is where the news is: every one of the worst positions is a point.
  for (size_t i = 0; i + kPoints < n; i += step) point(i);
  for (size_t i = n > kPoints ? n - kPoints : 0; i < n; ++i) point(i);
  return out;
}

}  // namespace

Result<void> plot_kld(Storage& storage, const KldReport& report, const Path& path) {
  return draw_png(storage, path, [&](const Path& output) {
    std::string script = gnuplot_png(output);
    script += "set title 'Divergence from the reference, position by position'\n";
    script += "set xlabel 'KLD, nats'\nset ylabel 'share of positions at or above'\n";
    script += "set logscale xy\nset format '10^{%T}'\nset grid\nset key outside right noenhanced\n";
    const size_t n = report.by_domain.size();
    std::vector<double> values, shares;
    for (const auto& domain : report.by_domain)
      for (const double value : domain.sorted) {
        values.push_back(std::max(value, kSmallest));
        shares.push_back(1.0 / static_cast<double>(domain.sorted.size()));
      }
    if (!shares.empty()) shares.push_back(1);
    script += gnuplot_range("x", values) + gnuplot_range("y", shares);
    for (size_t i = 0; i < n; ++i)
      script += fmt::format("$d{} << EOD\n{}EOD\n", i, exceedance(report.by_domain[i].sorted));
    for (size_t i = 0; i < n; ++i)
      script += fmt::format("{} $d{} using 1:2 with steps linewidth 2 title {}", i == 0 ? "plot" : ",", i,
                            gnuplot_quoted(fmt::format("{}, mean {:.2g}", report.by_domain[i].domain,
                                                       report.by_domain[i].mean)));
    return script + "\n";
  });
}

}  // namespace forebay
