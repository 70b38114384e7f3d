// forebay logits, convert and kld.
#include <cmath>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/storage.h"
#include "gguf/gguf.h"
#include "program.h"
#include "safetensors/safetensors.h"
#include "scripted_model.h"
#include "support/result_matchers.h"
#include "support/temporary_directory.h"
#include "support/test_models.h"

namespace forebay::cli {
namespace {

using forebay::testing::converted_vectors;

struct Tensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

class Files : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return (directory_ / name).string(); }
  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  size_t n_files() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()),
                         std::filesystem::directory_iterator());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Storage> storage_ = make_posix_storage();
};

class Logits : public Files {
 protected:
  /// Runs the command and reads a tensor of what it wrote.
  Tensor logits(const std::string& model, const std::string& ids, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"logits", "-m", model, "--ids", ids, "-o", file("out.safetensors")});
    const Finished finished = run_program(more);
    EXPECT_EQ(finished.code, 0) << finished;
    EXPECT_EQ(finished.out + finished.err, "");
    const Result<SafetensorsFile> out = SafetensorsFile::open(*storage_, file("out.safetensors"));
    EXPECT_OK(out);
    const SafeTensor* tensor = out->find("logits");
    if (tensor == nullptr) return {};
    Tensor read{tensor->shape, std::vector<float>(tensor->n_elements())};
    EXPECT_OK(out->read_f32(*tensor, 0, read.values));
    return read;
  }
};

std::string joined(const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

TEST_F(Logits, AreThoseOfTheReference) {
  const auto expected = forebay::testing::expected_of("qwen4exp");
  const std::vector<int32_t> ids = expected.ints("ids");
  const std::vector<float> want = expected.floats("logits");  // of the last positions
  const Tensor got = logits(converted_vectors("qwen4exp").string(), joined(ids));
  ASSERT_EQ(got.shape.size(), 2u);
  EXPECT_EQ(got.shape[0], ids.size());
  ASSERT_GE(got.values.size(), want.size());
  float largest = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    worst = std::max(worst, std::abs(want[i] - got.values[got.values.size() - want.size() + i]));
  }
  EXPECT_LE(worst, 2e-4f * largest);
}

TEST_F(Logits, DoNotDependOnTheSpellingOfTheIds) {
  const Tensor want = logits(scripted_model(), "65,66,67");
  write(file("ids.json"), "{\"ids\": [65, 66, 67]}");
  EXPECT_EQ(logits(scripted_model(), file("ids.json")).values, want.values);
  write(file("ids.txt"), "65 66\n67\n");
  EXPECT_EQ(logits(scripted_model(), file("ids.txt")).values, want.values);
  EXPECT_NEAR(want.values[1 * 261 + 'A'], 4 * std::sin(7.13f * 'A' + 3.7f * 'B') + 6, 0.01);
}

TEST_F(Logits, ChunksOf64AndMoreGiveTheSameBits) {
  std::string ids = "1";
  for (int i = 2; i < 200; ++i) ids += "," + std::to_string(i);
  const std::string model = converted_vectors("qwen3moe").string();
  const Tensor want = logits(model, ids, {"--chunk", "64"});
  EXPECT_EQ(logits(model, ids, {"--chunk", "128"}).values, want.values);
  EXPECT_EQ(logits(model, ids, {"-t", "1"}).values, want.values);
  const Tensor reference = logits(model, ids, {"--reference-kernels"});
  EXPECT_NE(reference.values, want.values);
  for (size_t i = 0; i < want.values.size(); ++i) ASSERT_NEAR(reference.values[i], want.values[i], 1e-3) << i;
}

TEST_F(Logits, StoreWhatMadeThem) {
  logits(scripted_model(), "65", {"--chunk", "32"});
  const Result<SafetensorsFile> out = SafetensorsFile::open(*storage_, file("out.safetensors"));
  ASSERT_OK(out);
  EXPECT_EQ(out->metadata().at("forebay.chunk"), "32");
  EXPECT_EQ(out->metadata().at("forebay.model"), scripted_model());
}

TEST_F(Logits, ErrorsLeaveNoFile) {
  const auto fails = [&](const std::string& ids, std::vector<std::string> more,
                         std::initializer_list<std::string_view> parts) {
    more.insert(more.begin(), {"logits", "-m", scripted_model(), "--ids", ids, "-o", file("x.safetensors")});
    return is_error(run_program(more), 1, parts);
  };
  EXPECT_TRUE(fails("65,999", {}, {"999"}));
  EXPECT_TRUE(fails("[]", {}, {"[]"}));
  EXPECT_TRUE(fails("65,66", {"--mtp"}, {"no draft head"}));
  EXPECT_TRUE(fails("65", {"--mtp"}, {"two tokens"}));
  EXPECT_TRUE(fails("65", {"--memory-limit", "1K"}, {"1024"}));
  EXPECT_EQ(n_files(), 0u);
}

class Convert : public Files {
 protected:
  const std::string checkpoint_ = std::string(FOREBAY_TEST_DATA) + "/vectors/qwen3";
};

TEST_F(Convert, WritesAModelThatLoads) {
  const Finished finished = run_program({"convert", checkpoint_, "-o", file("m.gguf"), "--type", "bf16"});
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out, "");
  const Result<GgufFile> made = GgufFile::open(*storage_, file("m.gguf"));
  ASSERT_OK(made);
  EXPECT_EQ(made->find("token_embd.weight")->type, DType::kBF16);
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(Convert, TypesComeFromAFlagAPlanOrBoth) {
  write(file("plan.txt"), "# attention\nblk.*.attn_q.weight=f16\n");
  ASSERT_EQ(run_program({"convert", checkpoint_, "-o", file("m.gguf"), "--type",
                         "bf16,blk.*.attn_k.weight=q8_0", "--plan", file("plan.txt"), "-q", "--name", "tiny"})
                .code,
            0);
  const Result<GgufFile> made = GgufFile::open(*storage_, file("m.gguf"));
  ASSERT_OK(made);
  EXPECT_EQ(made->find("blk.0.attn_q.weight")->type, DType::kF16);
  EXPECT_EQ(made->find("blk.0.attn_k.weight")->type, DType::kQ8_0);
  EXPECT_EQ(made->find("blk.0.attn_v.weight")->type, DType::kBF16);
  EXPECT_EQ(*made->metadata().get_string("general.name"), "tiny");
  EXPECT_TRUE(is_error(run_program({"convert", checkpoint_, "-o", file("n.gguf"), "--plan", file("none")}), 1,
                       {"none"}));
}

TEST_F(Convert, ADryRunWritesNothing) {
  const Finished finished = run_program({"convert", checkpoint_, "--dry-run", "--json", "--type", "q8_0"});
  EXPECT_EQ(finished.code, 0) << finished;
  const nlohmann::json json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["architecture"], "qwen3");
  EXPECT_EQ(json["written"], false);
  EXPECT_GT(json["files"][0]["bytes"], 0);
  EXPECT_EQ(n_files(), 0u);
}

class Kld : public Files {
 protected:
  void SetUp() override {
    write(file("one.txt"), "ABCDEFGHIJ<|endoftext|>KLMNOPQRST");
    write(file("two.txt"), "ZYXWVUTSRQPON");
    write_scripted_model(file("sharp.gguf"), {.sharpness = 1.5f});
  }
  Finished kld(std::vector<std::string> more) {
    more.insert(more.begin(), {"kld", "--ref", scripted_model(), "--text", file("one.txt"), file("two.txt")});
    return run_program(more);
  }
};

TEST_F(Kld, OfAModelAndItselfIsZero) {
  const Finished finished = kld({"-m", scripted_model(), "--json", "--limit", "0"});
  EXPECT_EQ(finished.code, 0) << finished;
  const nlohmann::json json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["mean_kld"], 0);
  EXPECT_EQ(json["max_kld"], 0);
  EXPECT_EQ(json["top1"], 1);
  EXPECT_EQ(json["flips"].size(), 0u);
  ASSERT_EQ(json["texts"].size(), 2u);
  EXPECT_EQ(json["texts"][0]["text"], "one");
  EXPECT_EQ(json["tokens"], json["texts"][0]["tokens"].get<int>() + json["texts"][1]["tokens"].get<int>());
}

TEST_F(Kld, AboveTheLimitIsExitCode3) {
  const Finished finished = kld({"-m", file("sharp.gguf"), "--json"});
  EXPECT_EQ(finished.code, 0) << finished;
  const double mean = nlohmann::json::parse(finished.out)["mean_kld"];
  EXPECT_GT(mean, 0.01);
  const nlohmann::json interval = nlohmann::json::parse(finished.out)["ci95"];
  EXPECT_LE(interval[0], mean);
  EXPECT_GE(interval[1], mean);
  EXPECT_EQ(kld({"-m", file("sharp.gguf"), "--limit", std::to_string(mean * 1.01)}).code, 0);
  const Finished missed = kld({"-m", file("sharp.gguf"), "--limit", std::to_string(mean * 0.99)});
  EXPECT_EQ(missed.code, 3) << missed;
  EXPECT_EQ(lines_of(missed.err).size(), 1u) << missed;
}

TEST_F(Kld, StatsAreTheLastLineOnStandardError) {
  const std::string model = converted_vectors("qwen3moe", "q8_0").string();
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"bench", "-m", model, "--prefill", "8", "--decode", "4", "--repeat", "1", "--json"},
           {"bench", "-m", model, "--prefill", "8", "--decode", "4", "--repeat", "1", "--budget", "64M"}}) {
    std::vector<std::string> with = command;
    with.insert(with.end(), {"--stats", "json"});
    const Finished finished = run_program(with);
    ASSERT_EQ(finished.code, 0) << finished;
    const nlohmann::json stats = nlohmann::json::parse(lines_of(finished.err).back(), nullptr, false);
    ASSERT_TRUE(stats.is_object()) << finished;
    EXPECT_GT(stats["seconds"]["computing"], 0);
    EXPECT_GE(stats["seconds"]["host"], 0);
    EXPECT_GT(stats["memory_bytes"], 0);
    EXPECT_EQ(stats["ngram_bytes"], 0);
    EXPECT_EQ(stats.contains("experts"), command.back() == "64M");
    if (stats.contains("experts")) {
      EXPECT_GE(stats["experts"]["mean_reads"], 1);
      EXPECT_GE(stats["experts"]["peak_reads"], stats["experts"]["mean_reads"]);
    }
  }
  const Finished finished = kld({"-m", scripted_model(), "--stats", "json"});
  ASSERT_EQ(finished.code, 0) << finished;
  const nlohmann::json stats = nlohmann::json::parse(lines_of(finished.err).back(), nullptr, false);
  ASSERT_TRUE(stats.is_object()) << finished;
  EXPECT_GT(stats["tokens"], 0);
  EXPECT_FALSE(stats["seconds"].contains("host")) << "kld has more to do than this model's passes";
}

TEST(Bench, SaysWhereExpertsAreAndHowTheyAreRead) {
  const std::string model = converted_vectors("qwen3moe", "q8_0").string();
  const auto bench = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"bench",    "-m", model,      "--prefill", "8",
                                          "--decode", "4",  "--repeat", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.code, 0) << finished;
    return finished.out + finished.err;
  };
  const auto says = [](const std::string& text, const char* pattern) {
    return std::regex_search(text, std::regex(pattern));
  };
  EXPECT_TRUE(says(bench({}), "experts: mmap"));
  const std::string streamed = bench({"--budget", "64M"});
  EXPECT_TRUE(says(streamed, "experts: stream")) << streamed;
  EXPECT_TRUE(says(streamed, "read( past the page cache)? at .*, [0-9.]+ .iB of [0-9.]+ .iB used"))
      << streamed;
}

TEST(Pack, DoesNotReplaceAModel) {
  const TemporaryDirectory folder;
  const std::string model = (folder / "model.gguf").string(), pack = (folder / "model.pack").string();
  std::filesystem::copy_file(converted_vectors("qwen3moe", "q8_0"), model);
  EXPECT_TRUE(is_error(run_program({"pack", model, "-o", model}), 1, {"model.gguf", "a GGUF file"}));
  for (int again = 0; again < 2; ++again) EXPECT_EQ(run_program({"pack", model, "-o", pack}).code, 0);
  EXPECT_EQ(run_program({"inspect", model}).code, 0) << "still there";
}

/// The line that ends with what was measured; empty where there is none.
std::string plan_line_of(const Finished& finished) {
  const std::regex pattern(
      "plan: expected [0-9.e+]+ tok/s and [0-9.]+ % hits when warm, "
      "measured [0-9.e+]+ and [0-9.]+ %");
  for (const std::string& line : lines_of(finished.err))
    if (std::regex_match(line, pattern)) return line;
  return "";
}

TEST(Plans, RunsBeginWithTheirPlanAndEndWithWhatWasMeasured) {
  const std::string model = testing::embedded_model().string();
  const std::vector<std::string> run = {"run", "-m", model, "-p", "37 + 58?", "--temp", "0", "-n", "8"};
  const std::vector<std::string> bench = {"bench",    "-m", model,      "--prefill", "8",
                                          "--decode", "4",  "--repeat", "1"};
  for (std::vector<std::string> command : {run, bench}) {
    const bool is_run = command[0] == "run";
    EXPECT_EQ(plan_line_of(run_program(command)), "") << "nothing is streamed: there is no plan";
    command.insert(command.end(), {"--budget", "64M"});
    const Finished planned = run_program(command);
    const std::string line = plan_line_of(planned);
    ASSERT_NE(line, "") << planned;
    EXPECT_TRUE(planned.err.starts_with("plan: ") || planned.err.starts_with("budget ")) << planned;
    if (is_run) {
      EXPECT_EQ(lines_of(planned.err).back(), line) << planned;
    }
    // Of the plan's own last line, and of the statistics above.
    EXPECT_NE(planned.err.find("tok/s"), planned.err.find(line) + line.find("tok/s")) << planned;
    command.push_back("-q");
    EXPECT_EQ(plan_line_of(run_program(command)), "");
  }
}

TEST_F(Kld, PrintsATable) {
  const Finished finished = kld({"-m", file("sharp.gguf")});
  const std::vector<std::string> lines = lines_of(finished.out);
  ASSERT_GE(lines.size(), 4u) << finished;
  EXPECT_NE(lines[0].find("mean KLD"), std::string::npos);
  EXPECT_TRUE(lines[1].starts_with("one ")) << lines[1];
  EXPECT_TRUE(lines[3].starts_with("all ")) << lines[3];
  EXPECT_EQ(lines[1].find("one window"), std::string::npos) << "two documents: " << lines[1];
  EXPECT_NE(lines[2].find("one window: none"), std::string::npos) << lines[2];
}

TEST_F(Kld, FlagsChangeWhatIsMeasured) {
  const auto measured = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"-m", file("sharp.gguf"), "--json"});
    const Finished finished = kld(more);
    EXPECT_EQ(finished.code, 0) << finished;
    return nlohmann::json::parse(finished.out);
  };
  const nlohmann::json plain = measured({});
  EXPECT_GT(measured({"--window", "4"})["windows"], plain["windows"]);
  EXPECT_EQ(measured({"-n", "5"})["tokens"], 2 * 4);
  EXPECT_NE(measured({"--window", "4", "--seed", "2"})["ci95"], measured({"--window", "4"})["ci95"]);
  EXPECT_EQ(measured({"--step"})["mean_kld"], plain["mean_kld"]) << "here nothing depends on a cache";
  // Upside down, every likeliest token is another.
  write_scripted_model(file("sharp.gguf"), {.sharpness = -1});
  const nlohmann::json flips = measured({"--flips", "1"});
  EXPECT_EQ(flips["n_flips"], flips["tokens"]);
  EXPECT_EQ(flips["flips"].size(), 1u);
  EXPECT_EQ(flips["top1"], 0);
}

TEST_F(Kld, SidesCanHaveOptionsOfTheirOwn) {
  const Finished finished = kld({"-m", scripted_model(), "--ref-opt", "--reference-kernels -t 1", "--json"});
  EXPECT_EQ(finished.code, 0) << finished;
  const nlohmann::json json = nlohmann::json::parse(finished.out);
  EXPECT_LT(json["mean_kld"], 1e-6);
  // The bits do differ: the texts' own nats tell.
  EXPECT_NE(json["reference_nll"], json["candidate_nll"]);
  const Finished limited = kld({"-m", scripted_model(), "--cand-opt", "--memory-limit 1K"});
  EXPECT_TRUE(is_error(limited, 1, {"1024"}));
}

}  // namespace
}  // namespace forebay::cli
