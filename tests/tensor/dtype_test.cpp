#include "tensor/dtype.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace forebay {
namespace {

// Written down a second time, in the order of the ids, so that a slip in either table shows.
struct Row {
  uint32_t id;
  const char* name;
  int weights;
  int bytes;
};
constexpr Row kRows[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};

TEST(DType, IdsNamesAndSizes) {
  for (const Row& row : kRows) {
    const auto type = dtype_from_id(row.id);
    ASSERT_TRUE(type) << row.id;
    EXPECT_EQ(static_cast<uint32_t>(*type), row.id);
    EXPECT_EQ(name_of(*type), row.name);
    EXPECT_EQ(info(*type).type, *type);
    EXPECT_EQ(info(*type).block_weights, row.weights) << row.name;
    EXPECT_EQ(info(*type).block_bytes, row.bytes) << row.name;
    EXPECT_EQ(dtype_from_name(row.name), type);
    EXPECT_EQ(row_bytes(*type, 1024), 1024 / row.weights * row.bytes) << row.name;
  }
}

TEST(DType, OtherIdsAreUnknown) {
  std::set<uint32_t> known;
  for (const Row& row : kRows) known.insert(row.id);
  for (uint32_t id = 0; id < 300; ++id) EXPECT_EQ(dtype_from_id(id).has_value(), known.contains(id)) << id;
  EXPECT_FALSE(dtype_from_id(UINT32_MAX));
}

TEST(DType, NamesInAnyCase) {
  EXPECT_EQ(dtype_from_name("q4_k"), DType::kQ4_K);
  EXPECT_EQ(dtype_from_name("bf16"), DType::kBF16);
  EXPECT_EQ(dtype_from_name("iQ2_xXs"), DType::kIQ2_XXS);
  for (const char* name : {"", "Q4", "Q4_K ", "Q4_K_M", "Q4-K", "F8"})
    EXPECT_FALSE(dtype_from_name(name)) << name;
}

}  // namespace
}  // namespace forebay
