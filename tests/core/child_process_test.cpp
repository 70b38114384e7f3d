// Programs that end, that do not, that are not there.
#include "core/child_process.h"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "core/storage.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ChildProcess, OutputsAndExitCodes) {
  const Result<Output> both = output_of({"sh", "-c", "echo to out; echo to err >&2; exit 3"}, seconds(20));
  ASSERT_OK(both);
  EXPECT_EQ(both->code, 3);
  EXPECT_EQ(both->out, "to out\n");
  EXPECT_EQ(both->err, "to err\n");
  // More than a pipe holds.
  const Result<Output> much = output_of({"sh", "-c", "head -c 300000 /dev/zero"}, seconds(20));
  ASSERT_OK(much);
  EXPECT_EQ(much->out.size(), 300000u);
  EXPECT_TRUE(
      fails_with(output_of({"no-such-program-here"}, seconds(1)), Code::kNotFound, "no-such-program"));
  EXPECT_TRUE(fails_with(output_of({"sleep", "30"}, milliseconds(50)), Code::kCancelled, "sleep", "50 ms"));
}

TEST(ChildProcess, LogsAreAppendedTo) {
  const TemporaryDirectory folder;
  const std::unique_ptr<Storage> storage = make_posix_storage();
  for (const char* word : {"one", "two"}) {
    Result<ChildProcess> child =
        ChildProcess::start({{"sh", "-c", "echo $WORD"}, {{"WORD", word}}, folder / "log"});
    ASSERT_OK(child);
    while (!child->finished()) std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(child->finished(), 0);
  }
  EXPECT_EQ(read_text(*storage, folder / "log").value(), "one\ntwo\n");
}

TEST(ChildProcess, StopsWithEverythingItStarted) {
  const TemporaryDirectory folder;
  Result<ChildProcess> child =
      ChildProcess::start({{"sh", "-c", "trap '' TERM; sleep 100 & echo $!; sleep 100"}, {}, folder / "log"});
  ASSERT_OK(child);
  const std::unique_ptr<Storage> storage = make_posix_storage();
  std::string grandchild;
  for (int i = 0; i < 1000 && grandchild.empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    grandchild = read_text(*storage, folder / "log").value();
  }
  EXPECT_FALSE(child->finished());
  EXPECT_EQ(child->stop(milliseconds(20)), 128 + SIGKILL);
  // Gone, or dead and waiting for whoever inherited it.
  std::string state = "R";
  for (int i = 0; i < 1000 && state != "Z"; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    const Result<Output> ps =
        output_of({"sh", "-c",
                   "cut -d' ' -f3 /proc/" + grandchild.substr(0, grandchild.find('\n')) + "/stat || echo Z"},
                  seconds(20));
    ASSERT_OK(ps);
    state = ps->out.substr(0, 1);
  }
  EXPECT_EQ(state, "Z");
}

}  // namespace
}  // namespace forebay
