// A directory that keeps states: what it finds, what it deletes and what it keeps.
#include "session/prefix_store.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "core/faulty_storage.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "test_models.h"

namespace forebay {
namespace {

using testing::LoadedModel;

using testing::some_ids;

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixStores : public ::testing::Test {
 protected:
  PrefixStores() : storage_(make_posix_storage()), model_(testing::converted_vectors("qwen4exp")) {}

  std::unique_ptr<PrefixStore> open(uint64_t max_bytes = 0, std::string kv = "f32",
                                    Storage* storage = nullptr) {
    Result<std::unique_ptr<PrefixStore>> store = PrefixStore::open(
        storage == nullptr ? *storage_ : *storage, {folder_.path(), max_bytes, {"model=1", "kv=" + kv}});
    EXPECT_OK(store);
    return std::move(store).value();
  }
  /// Runs the tokens and saves their state; its file's name.
  std::string save(PrefixStore& store, const std::vector<int32_t>& ids, bool shared = false) {
    SequenceState state = model_.state(1024);
    const Span span{&state, ids, LogitRows::kNone};
    EXPECT_OK(model_.model->forward({&span, 1}));
    std::string name;
    store.save({.image = {&state, nullptr, {}, {}}, .tokens = ids, .logits = {}, .shared = shared}, name)
        .wait();
    return name;
  }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename() != "forebay.lock") names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  uint64_t bytes_of(const std::string& name) { return std::filesystem::file_size(folder_ / name); }

  TemporaryDirectory folder_;
  std::unique_ptr<Storage> storage_;
  LoadedModel model_;
};

TEST_F(PrefixStores, FindTheLongestPrefixAfterARestartToo) {
  const std::vector<int32_t> a = some_ids(40, 1), b = a + some_ids(30, 2), c = some_ids(50, 3);
  std::string name_a, name_b;
  {
    const auto store = open();
    name_a = save(*store, a);
    name_b = save(*store, b);
    save(*store, c);
    EXPECT_EQ(store->find(b + some_ids(9, 4), {}).name, name_b);
  }
  const auto store = open();
  EXPECT_EQ(store->stats().n_files, 3u);
  PrefixStore::Find found = store->find(b + some_ids(9, 4), {});
  EXPECT_EQ(found.name, name_b);
  EXPECT_EQ(found.n_usable, 70);
  // Without logits, the last token of a prompt must be run.
  EXPECT_EQ(store->find(b, {}).name, name_a);
  EXPECT_EQ(store->find(some_ids(60, 9), {}).n_usable, 0);
  SequenceState state = model_.state(128);
  std::vector<float> logits;
  ASSERT_OK(
      store->open_file(name_b).value().load(state, std::vector<std::string>{"model=1", "kv=f32"}, logits));
  EXPECT_EQ(state.n_cells(), 70);
}

TEST_F(PrefixStores, AnotherKvTypeIsIgnoredAndSaid) {
  const std::vector<int32_t> a = some_ids(40, 1);
  const std::string name = save(*open(), a);
  const auto store = open(0, "int8");
  PrefixStore::Find found = store->find(a + some_ids(5, 2), {});
  EXPECT_EQ(found.n_usable, 0);
  EXPECT_EQ(found.why_not, name + ", which has 40 of the tokens, was saved with kv=f32, not kv=int8");
  const std::string ours = save(*store, a);
  found = store->find(a + some_ids(5, 2), {});
  EXPECT_EQ(found.name, ours);
  EXPECT_EQ(found.why_not, "");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(PrefixStores, DamagedPartialAndOrphanedFilesAreDeleted) {
  const std::vector<int32_t> system = some_ids(64, 1), chat = system + some_ids(30, 2);
  std::string parent, child, other;
  {
    const auto store = open();
    parent = save(*store, system, /*shared=*/true);
    child = save(*store, chat);
    other = save(*store, some_ids(40, 5));
  }
  EXPECT_EQ(read_session_header(*storage_, folder_ / child).value().parent, parent);
  std::filesystem::copy_file(folder_ / child, folder_ / "x.session.partial");
  std::filesystem::resize_file(folder_ / other, 5000);
  {
    const auto store = open();
    EXPECT_EQ(files(), (std::vector<std::string>{std::min(parent, child), std::max(parent, child)}));
    EXPECT_EQ(store->stats().n_discarded, 2u);
  }
  std::filesystem::remove(folder_ / parent);
  const auto store = open();
  EXPECT_TRUE(files().empty());
}

TEST_F(PrefixStores, SharedPrefixesAreLearnedAndPinned) {
  const std::vector<int32_t> system = some_ids(47, 1);
  const std::vector<int32_t> one = system + some_ids(30, 2), two = system + some_ids(30, 3),
                             three = system + some_ids(60, 4);
  const auto store = open();
  const std::string mine = save(*store, one);
  // Its own conversation, edited, is not another conversation.
  EXPECT_EQ(store->find(two, {mine}).learn_at, 0);
  PrefixStore::Find found = store->find(two, {});
  EXPECT_EQ(found.n_usable, 0);
  ASSERT_EQ(found.learn_at, 44) << "a multiple of 4";
  const std::vector<int32_t> prefix(system.begin(), system.begin() + 44);
  const std::string shared = save(*store, prefix, /*shared=*/true);
  save(*store, two);
  found = store->find(three, {});
  EXPECT_EQ(found.name, shared);
  EXPECT_EQ(found.n_usable, 44);
  EXPECT_EQ(found.learn_at, 0) << "learned already";
  const std::string name = save(*store, three);
  const SessionHeader child = read_session_header(*storage_, folder_ / name).value();
  EXPECT_EQ(child.parent, shared);
  EXPECT_TRUE(read_session_header(*storage_, folder_ / shared).value().pinned);
  // Short ones are not worth a file.
  EXPECT_EQ(
      store->find(std::vector<int32_t>(system.begin(), system.begin() + 31) + some_ids(40, 8), {}).learn_at,
      0);
}

TEST_F(PrefixStores, TheBudgetIsKeptAndWhatIsNeededStays) {
  const std::vector<int32_t> a = some_ids(60, 1), b = some_ids(60, 2);
  const uint64_t one = bytes_of(save(*open(), some_ids(64, 9)));
  std::filesystem::remove_all(folder_.path());
  const auto store = open(2 * one + one / 2);
  const std::string name_a = save(*store, a), name_b = save(*store, b);
  // A goes on: what it went on from leaves, though B was used longer ago.
  ASSERT_OK(store->open_file(name_a));
  const std::vector<int32_t> a2 = a + some_ids(4, 5);
  const std::string name_a2 = save(*store, a2);
  EXPECT_EQ(store->find(b + a, {}).name, name_b);
  EXPECT_EQ(store->find(a2 + b, {}).name, name_a2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / name_a));
  {
    // B comes in while C is stored: B's file survives, though it is the oldest.
    const PrefixStore::Find needed = store->find(b + a, {});
    const std::string name_c = save(*store, some_ids(60, 3));
    EXPECT_TRUE(std::filesystem::exists(folder_ / name_b));
    EXPECT_TRUE(std::filesystem::exists(folder_ / name_c));
    EXPECT_FALSE(std::filesystem::exists(folder_ / name_a2));
  }
  uint64_t bytes = 0;
  for (const std::string& name : files()) bytes += bytes_of(name);
  EXPECT_LE(bytes, 2 * one + one / 2);
  EXPECT_EQ(store->stats().bytes, bytes);
  const auto small = open(one / 2);
  EXPECT_EQ(save(*small, some_ids(60, 7)).empty(), false);
  EXPECT_EQ(small->stats().n_not_saved, 1u);
}

TEST_F(PrefixStores, ParentsLeaveAfterTheirChildren) {
  const std::vector<int32_t> system = some_ids(64, 1);
  const auto first = open();
  const std::string parent = save(*first, system, /*shared=*/true);
  const std::string child = save(*first, system + some_ids(20, 2));
  const uint64_t room = 2 * bytes_of(parent) + 1000;
  const auto store = open(room);
  save(*store, some_ids(40, 3));
  EXPECT_FALSE(std::filesystem::exists(folder_ / child));
  EXPECT_TRUE(std::filesystem::exists(folder_ / parent)) << "pinned ones leave last";
}

TEST_F(PrefixStores, WritesThatFailLeaveNoEntry) {
  for (StorageOp op :
       {StorageOp::kCreate, StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename})
    for (int n : {1, 2, 7}) {
      FaultyStorage faulty(*storage_, {.op = op, .fail_at = n, .reason = "no space left"});
      const auto store = open(0, "f32", &faulty);
      const std::vector<int32_t> ids = some_ids(40, 1);
      save(*store, ids);
      if (faulty.n_faults() == 0) continue;
      EXPECT_TRUE(files().empty());
      EXPECT_EQ(store->find(ids + ids, {}).n_usable, 0);
      EXPECT_EQ(store->stats().n_not_saved, 1u);
      // The next one is fine.
      const std::string name = save(*store, ids);
      EXPECT_EQ(store->find(ids + ids, {}).name, name);
      store->discard(name, "the test is over");
    }
}

TEST_F(PrefixStores, TwoOfThemShareADirectory) {
  const auto one = open(), two = open();
  const std::vector<int32_t> a = some_ids(40, 1), b = some_ids(40, 2);
  const std::string name_a = save(*one, a), name_b = save(*two, b);
  EXPECT_EQ(two->find(a + b, {}).name, name_a);
  EXPECT_EQ(one->find(b + a, {}).name, name_b);
  const PrefixStore::Find found = one->find(b + a, {});
  two->discard(name_b, "the other process says so");
  EXPECT_TRUE(fails_with(one->open_file(found.name), Code::kNotFound, name_b));
  EXPECT_EQ(one->find(b + a, {}).n_usable, 0);
  // The same tokens by both at once: one file.
  save(*one, b);
  save(*two, b);
  EXPECT_EQ(files().size(), 2u);
}

}  // namespace
}  // namespace forebay
