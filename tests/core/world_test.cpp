// The words of each launcher, and what is said when they do not add up.
#include "core/world.h"

#include <map>

#include <gtest/gtest.h>

namespace forebay {
namespace {

using Variables = std::map<std::string, std::string>;

Result<World> world_of(const Variables& variables) {
  return read_world([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(World, NothingSetIsOneProcess) {
  const World world = world_of({}).value();
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(world.launcher, "none");
  // The batch script of an MPI job, with half of its words.
  EXPECT_EQ(world_of({{"SLURM_NTASKS", "4"}}).value().size, 1);
}

TEST(World, Torchrun) {
  const World world = world_of({{"RANK", "3"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "box"},
                                {"MASTER_PORT", "29500"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"SLURM_PROCID", "7"},
                                {"SLURM_NTASKS", "9"}})
                          .value();
  EXPECT_EQ(world.launcher, "torchrun") << "RANK wins over what surrounds it";
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 8);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.host, "box");
  EXPECT_EQ(world.port, 29500);
  EXPECT_TRUE(world.has_agent_store);
}

TEST(World, MpirunOnOneMachineNeedsOnlyAPort) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"MASTER_PORT", "4000"}};
  EXPECT_EQ(world_of(variables).value().host, "127.0.0.1");
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_NE(world_of(variables).error().message.find("MASTER_ADDR is not set"), std::string::npos);
  const World pmi = world_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).value();
  EXPECT_EQ(pmi.launcher, "pmi");
}

TEST(World, SlurmKnowsThePlace) {
  Variables variables = {{"SLURM_PROCID", "5"},  {"SLURM_NTASKS", "8"},
                         {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "2"}, {"SLURM_STEP_NODELIST", "node[03-06],gpu1"}};
  const World world = world_of(variables).value();
  EXPECT_EQ(world.launcher, "slurm");
  EXPECT_EQ(world.host, "node03");
  EXPECT_EQ(world.port, 20000 + (1234 * 7 + 2) % 20000);
  variables["MASTER_ADDR"] = "other";
  variables["MASTER_PORT"] = "77";
  EXPECT_EQ(world_of(variables).value().host, "other");
  EXPECT_EQ(world_of(variables).value().port, 77);
}

TEST(World, FirstHostOfAList) {
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("n[1-4]"), "n1");
  EXPECT_EQ(first_host("n[07,9],m"), "n07");
  EXPECT_EQ(first_host("rack[2-3]-x,y"), "rack2-x");
  EXPECT_EQ(first_host("n["), "n");
  EXPECT_EQ(first_host(""), "");
}

TEST(World, MistakesAreNamed) {
  const auto message = [](const Variables& variables) { return world_of(variables).error().message; };
  EXPECT_EQ(message({{"RANK", "0"}}), "WORLD_SIZE is not set");
  EXPECT_EQ(message({{"WORLD_SIZE", "2"}}), "RANK is not set");
  EXPECT_EQ(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK is '2': a number from 0 to 1");
  EXPECT_EQ(message({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), "RANK is 'x': a number from 0 to 1");
  EXPECT_NE(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR is not set"), std::string::npos);
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), "MASTER_PORT is not set");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}),
            "MASTER_PORT is '70000': a number from 1 to 65535");
}

}  // namespace
}  // namespace forebay
