#include "core/gnuplot.h"

#include <gtest/gtest.h>

#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

TEST(Gnuplot, TextIsQuoted) {
  EXPECT_EQ(gnuplot_quoted("a'b\nc"), "'a''b c'");
}

TEST(Gnuplot, AnAxisOfOneValueGetsARange) {
  const auto range = [](std::vector<double> values) { return gnuplot_range("x", values); };
  EXPECT_EQ(range({1, 2}), "");
  EXPECT_EQ(range({0, 0}), "set xrange [0:1]\n");
  EXPECT_EQ(range({}), "set xrange [0:1]\n");
  EXPECT_EQ(range({4, 4, 4}), "set xrange [2:6]\n");
  EXPECT_EQ(range({-1e-8}), "set xrange [-1.5e-08:-5e-09]\n");
}

TEST(Gnuplot, APointIsDrawnWithoutAWarning) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  const std::vector<double> one = {1e-8};
  ::testing::internal::CaptureStderr();
  const Result<void> drawn = draw_png(*storage, folder / "point.png", [&](const Path& output) {
    return gnuplot_png(output) + "set logscale xy\n" + gnuplot_range("x", one) + gnuplot_range("y", one) +
           "$d << EOD\n1e-8 1e-8\nEOD\nplot $d using 1:2 with steps\n";
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  if (!drawn && drawn.error().code == Code::kNotFound) GTEST_SKIP() << drawn.error().message;
  EXPECT_OK(drawn);
  EXPECT_EQ(said, "");
  EXPECT_TRUE(storage->exists(folder / "point.png"));
}

TEST(Gnuplot, WhereItCannotWriteItIsNotAsked) {
  const TemporaryDirectory folder;
  const auto storage = make_posix_storage();
  ::testing::internal::CaptureStderr();
  const Result<void> drawn = draw_png(*storage, folder / "none" / "a.png", [](const Path&) -> std::string {
    ADD_FAILURE() << "asked for a script";
    return "";
  });
  EXPECT_TRUE(fails_with(drawn, Code::kNotFound, "a.png"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace forebay
