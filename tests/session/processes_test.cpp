// What other processes do to a cache directory: killed while they write, or writing at the same time.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/prefix_store.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"

namespace forebay {
namespace {

ModelConfig tiny() {
  ModelConfig c;
  c.n_blocks = 4;
  c.d_model = 64;
  c.attention.shape = {.n_heads = 2, .n_kv_heads = 1, .head_dim = 64};
  c.indexer = {.n_heads = 1, .head_dim = 32, .top_k_cells = 64, .block_cells = 4};
  c.gated_delta.shape = {.n_k_heads = 2, .n_v_heads = 4, .k_dim = 64, .v_dim = 64};
  c.gated_delta.conv_kernel = 4;
  for (int i = 0; i < c.n_blocks; ++i) {
    c.mixers.push_back(i % 4 == 3 ? MixerKind::kAttention : MixerKind::kGatedDelta);
    c.block_cells.push_back(i % 4 == 3 ? 4 : 0);
  }
  return c;
}

const std::vector<std::string> kFacts = {"model=1"};

std::vector<int32_t> ids_of(int conversation, int n) {
  std::vector<int32_t> ids(static_cast<size_t>(n), 100 + conversation);
  for (int i = 0; i < std::min(n, 40); ++i) ids[i] = i;  // what all begin with
  return ids;
}

/// The bytes of a state are a function of its tokens, so that whoever loads it can tell.
void fill(SequenceState& state, const std::vector<int32_t>& ids) {
  for (const StateSection& s : state.sections())
    for (size_t i = 0; i < s.bytes.size(); ++i)
      s.bytes[i] = static_cast<std::byte>(ids.size() * 31 + static_cast<size_t>(ids.back()) * 7 + i * 13);
  state.adopt(ids, 0);
}
/// Fixed sections alone: rows before a child's first are the parent's.
bool is_of(const SequenceState& state, const std::vector<int32_t>& ids) {
  for (const StateSection& s : state.sections())
    for (size_t i = 0; s.is_fixed() && i < s.bytes.size(); ++i)
      if (s.bytes[i] !=
          static_cast<std::byte>(ids.size() * 31 + static_cast<size_t>(ids.back()) * 7 + i * 13))
        return false;
  return true;
}

constexpr uint64_t kBudget = 1 << 20;

/// Saves conversations that grow, for ever or `n_saves` times.
[[noreturn]] void write_away(const Path& directory, int first_conversation, int n_saves) {
  const auto storage = make_posix_storage();
  Result<std::unique_ptr<PrefixStore>> store = PrefixStore::open(*storage, {directory, kBudget, kFacts});
  MemoryBudget budget;
  Result<SequenceState> state = SequenceState::create(tiny(), 512, false, KvType::kF32, budget);
  if (!store || !state) ::_exit(2);
  for (int i = 0; i != n_saves; ++i) {
    const std::vector<int32_t> ids =
        i % 9 == 8 ? ids_of(0, 40) : ids_of(first_conversation + i % 5, 41 + i % 400);
    fill(*state, ids);
    PrefixStore::Save save;
    save.image.state = &*state;
    save.tokens = ids;
    save.shared = ids.size() == 40;
    std::string name;
    (*store)->save(std::move(save), name).wait();
    const PrefixStore::Find found = (*store)->find(ids_of(first_conversation + i % 5, 500), {});
    if (found.n_usable > 0) (void)(*store)->open_file(found.name);
  }
  (*store)->wait();
  ::_exit(0);
}

pid_t start(const Path& directory, int first_conversation, int n_saves) {
  const pid_t child = ::fork();
  if (child == 0) write_away(directory, first_conversation, n_saves);
  return child;
}

/// Whatever is there loads, and is what it says.
void expect_all_usable(const Path& directory, int when) {
  const auto storage = make_posix_storage();
  const auto store = PrefixStore::open(*storage, {directory, kBudget, kFacts});
  ASSERT_OK(store);
  MemoryBudget budget;
  SequenceState state = SequenceState::create(tiny(), 512, false, KvType::kF32, budget).value();
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().filename() == "forebay.lock") continue;
    EXPECT_EQ(file.path().extension(), ".session") << file.path() << " after kill " << when;
    bytes += file.file_size();
    Result<SessionReader> reader = SessionReader::open(*storage, file.path());
    ASSERT_OK(reader) << when;
    std::vector<float> logits;
    ASSERT_OK(reader->load(state, kFacts, logits)) << when;
    EXPECT_TRUE(is_of(state, reader->header().tokens)) << file.path() << " after kill " << when;
  }
  EXPECT_LE(bytes, kBudget);
}

bool all_tests() {
  return std::getenv("FOREBAY_LONG_TESTS") != nullptr;  // the long version
}

TEST(Processes, KilledWhileTheyWriteTheyLeaveNothingThatMisleads) {
  const TemporaryDirectory folder;
  std::mt19937 random(7);
  const int n_kills = all_tests() ? 200 : 12;
  for (int kill = 0; kill < n_kills; ++kill) {
    const pid_t child = start(folder.path(), 1 + kill % 3, -1);
    ::usleep(2000 + random() % 60000);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself, with " << status;
    expect_all_usable(folder.path(), kill);
  }
}

TEST(Processes, TwoWriteInOneDirectory) {
  const TemporaryDirectory folder;
  const int n_saves = all_tests() ? 400 : 40;
  const pid_t one = start(folder.path(), 1, n_saves), two = start(folder.path(), 4, n_saves);
  for (pid_t child : {one, two}) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  expect_all_usable(folder.path(), -1);
}

}  // namespace
}  // namespace forebay
