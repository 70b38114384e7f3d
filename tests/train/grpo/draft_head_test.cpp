// GRPO of a model with a draft head, which nothing trains here: it is held, carried along and written.
#include "grpo_runs.h"
#include "train/nets/files.h"
#include "train/nets/toy.h"
#include "train/tasks/char_vocabulary.h"
#include "train/tasks/task.h"

namespace forebay::train {
namespace {

class WithDraftHead : public Runs {
 protected:
  void SetUp() override {
    const CharVocabulary characters(make_task(GrpoSettings().task.name).value()->alphabet());
    GgufWriter words = GgufWriter::create(*storage_, temp_ / "words.gguf").value();
    for (const auto& [key, value] : characters.gguf_metadata()) words.set(key, value);
    ASSERT_TRUE(words.write_headers() && words.finish());
    const ModelConfig config = hyper_config({.n_vocab = static_cast<int>(characters.n_tokens())});
    before_ = named_tensors(*make_net(config, whole_model(config), 5).value());
    ASSERT_TRUE(write_gguf(*storage_, temp_ / "model.gguf", config, before_, temp_ / "words.gguf"));
  }
  std::vector<std::string> settings(const std::vector<std::string>& more) const {
    std::vector<std::string> all = with({"model.path=" + (temp_ / "model.gguf").string()});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string last_hash(const std::string& name) {
    return read_run_file(*storage_, run_file_path(directory(name), 4)).value().facts.at("hash");
  }

  NamedTensors before_;
};

TEST_F(WithDraftHead, SeveralProcessesTrainAsOneDoesToTheBit) {
  // The delta of bf16 weights is the other way in which a sampler is fed.
  for (const std::string weights : {"f32", "bf16-delta"}) {
    const std::vector<std::string> all = settings({"sampler.weights=" + weights, "pipeline.stages=3",
                                                   "wire.codec=sr", "anchor.every=2", "anchor.masked=true"});
    const uint64_t one = run("one-" + weights, all);
    EXPECT_EQ(run_in(3, "several-" + weights, all), one);
    EXPECT_EQ(rows("several-" + weights, {"wire_bytes_slow"}), rows("one-" + weights, {"wire_bytes_slow"}));
    EXPECT_EQ(last_hash("several-" + weights), last_hash("one-" + weights));
    EXPECT_EQ(read_text(*storage_, directory("several-" + weights) / "model.gguf").value(),
              read_text(*storage_, directory("one-" + weights) / "model.gguf").value());
  }
}

TEST_F(WithDraftHead, ItGoesOnInAnyNumberOfProcesses) {
  const uint64_t whole = run_in(2, "whole", settings({}));
  run_in(2, "parts", settings({"run.steps=2"}));
  EXPECT_EQ(run_in(4, "parts", settings({"run.steps=3"}), /*resume=*/true),
            run("three", settings({"run.steps=3"})));
  EXPECT_EQ(run("parts", settings({}), /*resume=*/true), whole);
  EXPECT_EQ(last_hash("parts"), last_hash("whole"));
  const auto model = load_net(*storage_, directory("whole") / "model.gguf").value();
  bool has_learnt = false;
  for (const auto& [name, tensor] : named_tensors(*model)) {
    const bool is_same = torch::equal(tensor, before_.at(name));
    if (name.starts_with("mtp.")) {
      EXPECT_TRUE(is_same) << name;
    }
    has_learnt = has_learnt || !is_same;
  }
  EXPECT_TRUE(has_learnt);
}

}  // namespace
}  // namespace forebay::train
