// Rows: every token exactly once, in an order of the seed's.
#include "train/fit/packer.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

/// Documents whose tokens are all different, so that each can be found.
Documents numbered(std::mt19937_64& random, size_t n_documents, int longest) {
  Documents documents;
  int32_t next = 1;
  for (size_t d = 0; d < n_documents; ++d) {
    std::vector<int32_t> ids(1 + random() % static_cast<uint64_t>(longest));
    for (int32_t& id : ids) id = next++;
    documents.add(ids, std::vector<uint8_t>(ids.size(), 1));
  }
  return documents;
}

std::vector<int64_t> values(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

class PackerProperty : public ::testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(Packings, PackerProperty, ::testing::Values(Packing::kStream, Packing::kWhole));

TEST_P(PackerProperty, EveryTokenIsReadOnceAnEpochAndFollowedByItsSuccessor) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Documents documents = numbered(random, 1 + random() % 40, 50);
    const auto T = static_cast<int64_t>(2 + random() % 40);
    Packer packer(documents, T, GetParam(), seed, 0);
    const int64_t n = packer.rows_in_first_epoch();
    const Rows rows = packer.rows(0, n);
    std::map<int64_t, int> read, predicted;
    const std::vector<int64_t> ids = values(rows.ids_BT), targets = values(rows.targets_BT);
    const float* weights = rows.weights_BT.data_ptr<float>();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != 0) ++read[ids[i]];
      if (weights[i] == 0) continue;
      ++predicted[targets[i]];
      // In a document, the successor is the next number; behind one, the first token of another.
      const bool ends =
          std::ranges::find(documents.ends, static_cast<uint64_t>(ids[i])) != documents.ends.end();
      if (!ends) {
        EXPECT_EQ(targets[i], ids[i] + 1);
      }
    }
    EXPECT_EQ(read.size(), documents.ids.size());
    for (const auto& [id, times] : read) EXPECT_EQ(times, 1) << id;
    for (const auto& [id, times] : predicted) EXPECT_EQ(times, 1) << id;
    const size_t never = GetParam() == Packing::kStream ? 1 : documents.size();
    EXPECT_EQ(predicted.size(), documents.ids.size() - never);
  }
}

TEST_P(PackerProperty, RowsDoNotDependOnHowTheyAreAskedFor) {
  std::mt19937_64 random(7);
  const Documents documents = numbered(random, 25, 30);
  Packer packer(documents, 16, GetParam(), 3, 0), other(documents, 16, GetParam(), 3, 0);
  const int64_t n = 3 * packer.rows_in_first_epoch();
  const Rows all = packer.rows(0, n);
  for (int64_t row = n - 1; row >= 0; --row) {
    const Rows one = other.rows(row, 1);
    EXPECT_TRUE(torch::equal(one.ids_BT[0], all.ids_BT[row])) << row;
    EXPECT_TRUE(torch::equal(one.targets_BT[0], all.targets_BT[row])) << row;
  }
}

TEST_P(PackerProperty, TheSeedOrdersTheDocuments) {
  std::mt19937_64 random(8);
  const Documents documents = numbered(random, 40, 20);
  Packer a(documents, 16, GetParam(), 1, 0), b(documents, 16, GetParam(), 2, 0);
  EXPECT_FALSE(torch::equal(a.rows(0, 4).ids_BT, b.rows(0, 4).ids_BT));
  const int64_t n = a.rows_in_first_epoch();
  EXPECT_FALSE(torch::equal(a.rows(0, 4).ids_BT, a.rows(n, 4).ids_BT)) << "a new order in every epoch";
}

TEST(Packer, WholeDocumentsAreNotCutWhereTheyFit) {
  std::mt19937_64 random(9);
  const Documents documents = numbered(random, 60, 16);
  Packer packer(documents, 16, Packing::kWhole, 4, 0);
  const Rows rows = packer.rows(0, packer.rows_in_first_epoch());
  for (size_t d = 0; d < documents.size(); ++d) {
    const auto first = static_cast<int64_t>(documents.ends[d] + 1),
               last = static_cast<int64_t>(documents.ends[d + 1]);
    const auto row_of = [&](int64_t id) { return (rows.ids_BT == id).nonzero()[0][0].item<int64_t>(); };
    EXPECT_EQ(row_of(first), row_of(last)) << d;
  }
}

}  // namespace
}  // namespace forebay::train
