// Rows of every type: what is kept, and that every version keeps and reads the same bits.
#include "kernels/kv_rows.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "kv_memory.h"
#include "parity.h"
#include "tensor/half.h"

namespace forebay {
namespace {

using testing::KvMemory;
using testing::Random;

constexpr KvType kRowTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8};

TEST(KvRows, NamesAreReadBack) {
  for (KvType type : kRowTypes) EXPECT_EQ(kv_type_from_name(name_of(type)), type);
  EXPECT_EQ(kv_type_from_name("q8"), std::nullopt);
}

TEST(KvRows, EveryVersionKeepsAndReadsTheSameBits) {
  if (best_isa() == Isa::kReference) GTEST_SKIP() << "no fast instruction set on this machine";
  Random random(31);
  for (KvType type : kRowTypes)
    for (int dim : {1, 4, 8, 32, 63, 64, 72, 130, 256}) {
      std::vector<float> x = random.normal(5 * 2 * dim, 3.0f);
      x[0] = NAN;
      x[x.size() / 5] = INFINITY;
      x[x.size() / 2] = 1e-9f;
      x.back() = 7e4f;
      KvMemory a(type, 2, dim, x, Isa::kReference), b(type, 2, dim, x, best_isa());
      EXPECT_EQ(a.values, b.values) << name_of(type) << ", " << dim;
      EXPECT_EQ(a.scales, b.scales) << name_of(type) << ", " << dim;
      for (int64_t cell = 0; cell < 5; ++cell)
        for (int head = 0; head < 2; ++head) {
          std::vector<float> p(dim), q(dim + 1, 5.0f);
          read_head(Isa::kReference, a.rows, cell, head, p.data());
          read_head(best_isa(), a.rows, cell, head, q.data());
          EXPECT_EQ(std::memcmp(p.data(), q.data(), dim * sizeof(float)), 0) << name_of(type) << ", " << dim;
          EXPECT_EQ(q[dim], 5.0f) << "written past the end";
        }
    }
}

TEST(KvRows, IntegersAreOfTheirGroupsLargest) {
  std::vector<float> x(80);
  for (int d = 0; d < 80; ++d) x[d] = static_cast<float>(d - 20) * 0.37f;
  KvMemory m(KvType::kInt8, 1, 80, x);
  ASSERT_EQ(m.scales.size(), 2u);
  for (int g = 0; g < 2; ++g) {
    float largest = 0;
    for (int d = 64 * g; d < std::min(80, 64 * g + 64); ++d) largest = std::max(largest, std::fabs(x[d]));
    EXPECT_EQ(m.scales[g], f16_from_f32(largest / 127.0f));
    for (int d = 64 * g; d < std::min(80, 64 * g + 64); ++d) {
      const float want = std::clamp(std::nearbyint(x[d] / f32_from_f16(m.scales[g])), -127.0f, 127.0f);
      EXPECT_EQ(static_cast<float>(static_cast<int8_t>(m.values[d])), want);
    }
  }
}

TEST(KvRows, NothingThatIsNotFiniteGoesUnseen) {
  for (KvType type : kRowTypes)
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> x(64, 1.0f), out(64);
      x[40] = bad;
      KvMemory m(type, 1, 64, x);
      read_head(Isa::kReference, m.rows, 0, 0, out.data());
      float poison = 0;
      for (float v : out) poison += v - v;
      EXPECT_TRUE(std::isnan(poison)) << name_of(type);
    }
}

TEST(KvRows, ZerosStayZeros) {
  for (KvType type : kRowTypes) {
    const std::vector<float> x(70, 0.0f);
    std::vector<float> out(70, 1.0f);
    KvMemory m(type, 1, 70, x);
    read_head(best_isa(), m.rows, 0, 0, out.data());
    EXPECT_EQ(out, x) << name_of(type);
  }
}

}  // namespace
}  // namespace forebay
