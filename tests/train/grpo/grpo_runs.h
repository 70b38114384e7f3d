/// Whole runs of a very small model, in one process or as ranks on threads of it.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/free_port.h"
#include "support/temporary_directory.h"
#include "train/grpo/run_file.h"
#include "train/grpo/trainer.h"

namespace forebay::train {

/// "cvc" gives every step something to learn: so small a model has no right answer to be rewarded for.
inline const std::vector<std::string> kTiny = {"model.hidden=32",
                                               "model.blocks=4",
                                               "model.heads=2",
                                               "model.kv_heads=1",
                                               "model.head_dim=16",
                                               "model.ffn=32",
                                               "sft.steps=2",
                                               "sft.batch=16",
                                               "grpo.prompts=6",
                                               "grpo.answers=4",
                                               "grpo.lr=1e-2",
                                               "grpo.warmup=0",
                                               "grpo.drop_equal=false",
                                               "validation.every=0",
                                               "probe.every=2",
                                               "sampler.context=16",
                                               "sampler.threads=1",
                                               "run.steps=4",
                                               "run.checkpoint_every=2",
                                               "run.threads=1",
                                               "pipeline.micro_batch=10",
                                               "grpo.beta=0.05",
                                               "cvc.mode=ce",
                                               "cvc.lambda=0.5"};

inline std::vector<std::string> with(const std::vector<std::string>& settings) {
  std::vector<std::string> all = kTiny;
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

class Runs : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  Path directory(const std::string& name) const { return temp_ / name; }

  Result<std::unique_ptr<GrpoRun>> open(const std::string& name, const std::vector<std::string>& settings,
                                        bool resume = false, const World& world = World()) {
    Recipe recipe = TRY(Recipe::parse("", "test", settings));
    return GrpoRun::open(*storage_, std::move(recipe), directory(name), resume, {}, {}, world);
  }
  /// Hash of the policy at the end.
  uint64_t run(const std::string& name, const std::vector<std::string>& settings, bool resume = false) {
    const Result<uint64_t> hash = run_rank(name, settings, resume, World());
    EXPECT_TRUE(hash) << hash.error().message;
    return hash ? *hash : 0;
  }
  /// The same in `size` processes, which are threads here.
  uint64_t run_in(int size, const std::string& name, const std::vector<std::string>& settings,
                  bool resume = false) {
    const std::vector<Result<uint64_t>> hashes = ranks(size, name, settings, resume);
    for (size_t rank = 0; rank < hashes.size(); ++rank)
      EXPECT_TRUE(hashes[rank]) << "rank " << rank << ": " << hashes[rank].error().message;
    return hashes[0] ? *hashes[0] : 0;
  }
  std::vector<Result<uint64_t>> ranks(int size, const std::string& name,
                                      const std::vector<std::string>& settings, bool resume = false) {
    const int port = free_port().value();
    std::vector<Result<uint64_t>> hashes(static_cast<size_t>(size), uint64_t{0});
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        World world;
        world.rank = world.local_rank = rank;
        world.size = world.local_size = size;
        world.port = port;
        hashes[static_cast<size_t>(rank)] = run_rank(name, settings, resume, world);
      });
    threads.clear();
    return hashes;
  }
  /// Rows by step, the later of two; without times, the recipe's hash and the keys that are named.
  std::map<int64_t, Json> rows(const std::string& name, const std::vector<std::string>& without = {}) {
    std::map<int64_t, Json> result;
    std::istringstream text(read_text(*storage_, directory(name) / "metrics.jsonl").value());
    for (std::string line; std::getline(text, line);) {
      Json row = Json::parse(line);
      if (!row.contains("step")) continue;
      const int64_t step = row["step"];
      for (const char* time :
           {"step_s", "draw_s", "refresh_s", "stage_compute_s", "stage_codec_s", "stage_wait_s"})
        row.erase(time);
      // Of how the sampler is fed, not of what is learnt: all of it comes anew after a resume.
      row.erase("weight_bytes");
      row.erase("weights_changed");
      row.erase("recipe");
      for (const std::string& key : without) row.erase(key);
      result[step] = row;
    }
    return result;
  }
  static std::vector<std::string> keys_with(const Json& row, const std::string& start) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : row.items())
      if (key.starts_with(start)) keys.push_back(key);
    return keys;
  }

  TemporaryDirectory temp_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();

 private:
  Result<uint64_t> run_rank(const std::string& name, const std::vector<std::string>& settings, bool resume,
                            const World& world) {
    const std::unique_ptr<GrpoRun> opened = TRY(open(name, settings, resume, world));
    TRY(opened->run({}));
    const NamedTensors policy = TRY(opened->policy_tensors());
    TRY(opened->close());
    return tensors_hash(policy);
  }
};

}  // namespace forebay::train
