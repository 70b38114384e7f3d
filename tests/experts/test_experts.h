/// A file of experts whose values say which expert and plane they are of, and what every test does with it.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "experts/expert_pack.h"
#include "experts/expert_source.h"
#include "experts/expert_store.h"
#include "support/temporary_directory.h"

namespace forebay {

constexpr int kBlocks = 3;
constexpr int kExperts = 16;

/// Planes of F32 rows whose values say which expert and plane they are of; blocks differ in size.
struct TestFile {
  TestFile() : path(folder / "experts.bin") {
    std::vector<float> values;
    values.resize(7);  // nothing is aligned
    for (int b = 0; b < kBlocks; ++b) {
      ExpertPlanes& block = blocks.emplace_back();
      int p = 0;
      for (ExpertMatrices* plane : {&block.gate, &block.up, &block.down}) {
        plane->file = path;
        plane->file_offset = values.size() * sizeof(float);
        plane->first.n_rows = 10 + b;
        plane->first.n_cols = 200 + 100 * b + p;
        plane->first.row_stride_bytes = plane->first.n_cols * static_cast<int64_t>(sizeof(float));
        plane->expert_stride = plane->first.n_rows * plane->first.row_stride_bytes;
        plane->n_experts = kExperts;
        for (int e = 0; e < kExperts; ++e)
          values.insert(values.end(), plane->first.n_rows * plane->first.n_cols, value(b, e, p));
        ++p;
      }
    }
    const auto file = storage->create(path).value();
    EXPECT_TRUE(file->append(std::as_bytes(std::span(values))).has_value());
    EXPECT_TRUE(file->close().has_value());
  }

  static float value(int block, int expert, int plane) {
    return static_cast<float>(block * 1000 + expert * 10 + plane);
  }

  ExpertStore open(Storage& through) { return ExpertStore::open(through, blocks).value(); }

  ExpertStore open_pack() {
    const Path pack = folder / "experts.pack";
    // Packing reads what is mapped.
    std::unique_ptr<ReadableFile> file = storage->open(path).value();
    map = file->map().value();
    for (ExpertPlanes& block : blocks)
      for (ExpertMatrices* plane : {&block.gate, &block.up, &block.down})
        plane->first.data = map->bytes().data() + plane->file_offset;
    EXPECT_TRUE(write_expert_pack(*storage, blocks, pack, {}, {}).has_value());
    return ExpertStore::open_pack(*storage, blocks, pack).value();
  }

  TemporaryDirectory folder;
  std::unique_ptr<Storage> storage = make_posix_storage();
  std::unique_ptr<Mapping> map;
  Path path;
  std::vector<ExpertPlanes> blocks;
};

inline bool holds(const MatrixView& m, float value) {
  std::vector<float> row(m.n_cols);
  for (int64_t r = 0; r < m.n_rows; ++r) {
    std::memcpy(row.data(), m.row(r), row.size() * sizeof(float));
    if (!std::all_of(row.begin(), row.end(), [&](float v) { return v == value; })) return false;
  }
  return true;
}

/// Requests the experts and checks every byte of what comes. Returns the error's message, empty if none.
inline std::string visit(ExpertSource& source, int block, const std::vector<int32_t>& experts) {
  Result<ExpertLease> lease = source.request(block, experts);
  if (!lease) return lease.error().message;
  size_t n = 0;
  while (true) {
    const Result<std::span<const ResidentExpert>> ready = lease->take_ready();
    if (!ready) return ready.error().message;
    if (ready->empty()) break;
    for (const ResidentExpert& e : *ready) {
      EXPECT_TRUE(holds(e.gate, TestFile::value(block, e.index, 0)));
      EXPECT_TRUE(holds(e.up, TestFile::value(block, e.index, 1)));
      EXPECT_TRUE(holds(e.down, TestFile::value(block, e.index, 2)));
      ++n;
    }
  }
  EXPECT_EQ(n, experts.size());
  return {};
}

inline std::vector<int32_t> random_set(std::mt19937_64& random, int n) {
  std::vector<int32_t> all(kExperts);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(n);
  return all;
}

}  // namespace forebay
