#include "convert/ngram_hash.h"

#include <gtest/gtest.h>

#include "test_checkpoint.h"

namespace forebay::convert {
namespace {

NgramConfig released() {
  NgramConfig config;
  config.block = 1;
  config.ngram_size = 3;
  config.heads_per_ngram = 8;
  config.embedding_width = 2560;
  config.vocab_base = 20'000'000;
  config.row_multiple = 128;
  config.seed = 1234;
  config.eos = 248044;
  return config;
}

TEST(NgramHashTest, ConstantsOfTheReleasedModel) {
  const NgramHash hash = make_ngram_hash(released(), 248320);
  EXPECT_EQ(hash.multipliers, (std::vector<uint64_t>{23703573157769, 20109073645365, 8052911324071}));
  EXPECT_EQ(hash.head_sizes,
            (std::vector<uint64_t>{20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069,
                                   20000077, 20000081, 20000093, 20000107, 20000147, 20000153, 20000159,
                                   20000161, 20000171}));
  EXPECT_EQ(hash.head_offsets,
            (std::vector<uint64_t>{0, 20000003, 40000026, 60000059, 80000106, 100000165, 120000228, 140000297,
                                   160000374, 180000455, 200000548, 220000655, 240000802, 260000955,
                                   280001114, 300001275}));
  EXPECT_EQ(ngram_table_rows(released(), 248320), 320001536u);
  EXPECT_EQ(released().row_width(), 160u);
}

/// Row ids of one position, as the format describes them: bigram heads, then trigram heads.
std::vector<uint64_t> rows(const NgramHash& hash, uint64_t t0, uint64_t t1, uint64_t t2) {
  const uint64_t bigram = (t0 * hash.multipliers[0]) ^ (t1 * hash.multipliers[1]);
  const uint64_t trigram = bigram ^ (t2 * hash.multipliers[2]);
  std::vector<uint64_t> rows;
  for (size_t head = 0; head < 16; ++head)
    rows.push_back((head < 8 ? bigram : trigram) % hash.head_sizes[head] + hash.head_offsets[head]);
  return rows;
}

TEST(NgramHashTest, PublishedRows) {
  const NgramHash hash = make_ngram_hash(released(), 248320);
  constexpr uint64_t kEos = 248044;
  EXPECT_EQ(rows(hash, kEos, kEos, kEos),
            (std::vector<uint64_t>{9663979, 26558231, 56120240, 74755659, 80459717, 109265651, 132697467,
                                   151022725, 170054832, 192967038, 200687722, 225763581, 259275737,
                                   272983544, 297596484, 300986548}));
  EXPECT_EQ(rows(hash, 1000, 2000, 3000),
            (std::vector<uint64_t>{1531522, 26458325, 48967948, 72533165, 95637132, 116681687, 138257734,
                                   140376286, 167316121, 196780774, 201192701, 239730030, 244538402,
                                   269354175, 284294431, 319007479}));
  EXPECT_EQ(rows(hash, 248045, 198, 248046),
            (std::vector<uint64_t>{18730347, 24623360, 41979138, 63215588, 88861041, 111683542, 136799118,
                                   145265914, 171733019, 184925979, 218515531, 231921872, 248621248,
                                   266282802, 285717244, 304492440}));
}

TEST(NgramHashTest, DerivedEqualsTheCheckpointsOwn) {
  // The vectors carry the reference implementation's buffers; without them the same must come out.
  TestCheckpoint checkpoint = TestCheckpoint::vectors("qwen4exp");
  const Converted stored(checkpoint, convert_options("bf16"));
  std::erase_if(checkpoint.tensors, [](const auto& entry) {
    return entry.first.find("layer_multipliers") != std::string::npos ||
           entry.first.find("ngram_heads_") != std::string::npos;
  });
  EXPECT_EQ(Converted(checkpoint, convert_options("bf16")).bytes(), stored.bytes());
}

}  // namespace
}  // namespace forebay::convert
