// The hash of the n-gram table against published rows of the released model.
#include <numeric>

#include <gtest/gtest.h>

#include "model/layers/layers.h"

namespace forebay {
namespace {

constexpr int32_t kEos = 248044;

NgramConfig released() {
  NgramConfig n;
  n.ngram_size = 3;
  n.heads_per_ngram = 8;
  n.eos = kEos;
  n.multipliers = {23703573157769, 20109073645365, 8052911324071};
  n.head_sizes = {20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077,
                  20000081, 20000093, 20000107, 20000147, 20000153, 20000159, 20000161, 20000171};
  uint64_t offset = 0;
  for (uint64_t size : n.head_sizes) {
    n.head_offsets.push_back(offset);
    offset += size;
  }
  return n;
}

std::vector<int64_t> rows_of(std::vector<int32_t> newest_first) {
  std::vector<int64_t> rows(16);
  ngram_row_ids(released(), newest_first, rows.data());
  return rows;
}

using Rows = std::vector<int64_t>;

TEST(NgramHash, PublishedRows) {
  EXPECT_EQ(rows_of({kEos, kEos, kEos}),
            (Rows{9663979, 26558231, 56120240, 74755659, 80459717, 109265651, 132697467, 151022725, 170054832,
                  192967038, 200687722, 225763581, 259275737, 272983544, 297596484, 300986548}));
  EXPECT_EQ(rows_of({1}),
            (Rows{16121432, 28938500, 59087997, 73487090, 81148277, 104500129, 120276032, 149373875,
                  176283436, 184305849, 216528839, 231080079, 257961536, 266068568, 289043455, 305959965}));
  EXPECT_EQ(rows_of({1000, 2000}),
            (Rows{1531522, 26458325, 48967948, 72533165, 95637132, 116681687, 138257734, 140376286, 162050674,
                  181514982, 212685763, 226686233, 240147951, 273965022, 285316313, 302664436}));
  EXPECT_EQ(rows_of({1000, 2000, 3000}),
            (Rows{1531522, 26458325, 48967948, 72533165, 95637132, 116681687, 138257734, 140376286, 167316121,
                  196780774, 201192701, 239730030, 244538402, 269354175, 284294431, 319007479}));
  EXPECT_EQ(rows_of({248045, 198, 248046}),
            (Rows{18730347, 24623360, 41979138, 63215588, 88861041, 111683542, 136799118, 145265914,
                  171733019, 184925979, 218515531, 231921872, 248621248, 266282802, 285717244, 304492440}));
}

TEST(NgramHash, EosCutsWhatIsOlder) {
  EXPECT_EQ(rows_of({1000, kEos, 3000}), rows_of({1000}));
  EXPECT_NE(rows_of({kEos, 2000, 3000}), rows_of({kEos}));  // not its own context
}

}  // namespace
}  // namespace forebay
