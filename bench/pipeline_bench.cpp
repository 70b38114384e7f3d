// What do codecs cost in a pipeline, and does a step take the time of the formula? One process of a
// pipeline, with the layers of a real model:
//
//   forebay launch -n 4 -- pipeline_bench codecs MODEL      codec share of each codec
//   forebay launch -n 2 -- pipeline_bench link MODEL        step time over emulated links, measured and
//   predicted
//
// More arguments, in this order: micro-batches (8), rows of each (4), tokens of a row (64), steps (3).
// A thread a process; the prediction holds where each has a core of its own.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "core/world.h"
#include "train/comm/circuits.h"
#include "train/nets/files.h"
#include "train/pipeline/schedule.h"
#include "train/pipeline/stage_runner.h"
#include "train/wire/basis.h"
#include "train/wire/make_codec.h"

namespace forebay::train {
namespace {

struct Plan {
  std::string question, model;
  int64_t n_micro_batches = 8, rows = 4, tokens = 64, n_steps = 3;
};

/// Budgets of recipes/lab-arms-pebble.toml.
std::vector<std::pair<std::string, CodecOptions>> codecs() {
  const auto with = [](const char* name, int bits) {
    return CodecOptions{.name = name, .keep = 0.05, .bits = bits, .rank = 32, .k_residual = 18};
  };
  return {{"dense", with("dense", 4)},       {"prf", with("prf", 4)},
          {"sr b=4", with("sr", 4)},         {"rn b=4", with("rn", 4)},
          {"prf-sr b=2", with("prf-sr", 2)}, {"powersgd", with("powersgd", 4)},
          {"frlr", with("frlr", 4)},         {"frlr-unbiased", with("frlr-unbiased", 4)}};
}

std::vector<MicroBatch> random_rows(const Plan& plan, int64_t n_vocab) {
  torch::manual_seed(1);
  std::vector<MicroBatch> batches;
  for (int64_t i = 0; i < plan.n_micro_batches; ++i)
    batches.push_back({torch::randint(n_vocab, {plan.rows, plan.tokens}, torch::kInt64)});
  return batches;
}

torch::Tensor next_token_loss(const torch::Tensor& logits_BTV, const torch::Tensor& ids_BT) {
  const torch::Tensor logits = logits_BTV.slice(1, 0, -1).flatten(0, 1);
  return torch::nn::functional::cross_entropy(logits, ids_BT.slice(1, 1).reshape({-1}));
}

/// Of one process, seconds a step.
struct Times {
  double step = 0, forward = 0, backward = 0, codec = 0, wait = 0;
  double bytes_sent = 0, link_busy = 0;
};

/// The median of the steps by the step's own time; bases of codecs are refreshed each step, beside the clock.
Result<Times> measure(const Plan& plan, Net& net, Comm& pipe, Codec* codec) {
  const auto n_boundaries = static_cast<size_t>(pipe.size()) - 1;
  StagePipeline pipeline{.codecs = std::vector<Codec*>(codec == nullptr ? 0 : n_boundaries, codec),
                         .seed = 7};
  const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(net, pipe, std::move(pipeline)));
  const std::vector<MicroBatch> batches = random_rows(plan, net.config().n_vocab);
  const auto loss = [&](size_t i, const torch::Tensor& logits) {
    return next_token_loss(logits, batches[i].ids_BT);
  };
  std::vector<Times> all;
  for (int64_t step = -1; step < plan.n_steps; ++step) {  // the first one warms up
    runner->reset_times();
    for (torch::Tensor& parameter : net.parameters()) parameter.mutable_grad() = torch::Tensor();
    const int64_t bytes_before = pipe.bytes_sent().bytes;
    const auto busy = [&] {
      double sum = 0;
      for (int peer = 0; peer < pipe.size(); ++peer)
        if (peer != pipe.rank()) sum += pipe.link_count(peer).busy_s;
      return sum;
    };
    const double busy_before = busy();
    TRY(pipe.barrier_named(fmt::format("step {}", step)));
    TRY(runner->train(batches, step, loss));
    const PipelineTimes& times = runner->times();
    TRY(pipe.barrier_named(fmt::format("end {}", step)));
    if (step >= 0)
      all.push_back({times.total, times.compute - times.backward, times.backward, times.codec, times.wait,
                     static_cast<double>(pipe.bytes_sent().bytes - bytes_before), busy() - busy_before});
    if (codec != nullptr && codec->basis() != nullptr) {
      if (pipe.rank() + 1 < pipe.size()) TRY(codec->basis()->update(pipe.rank()));
      codec->basis()->activate();
    }
  }
  std::sort(all.begin(), all.end(), [](const Times& a, const Times& b) { return a.step < b.step; });
  return all[all.size() / 2];
}

/// By rank, in every process.
Result<std::vector<Times>> everyones(const Times& mine, Comm& pipe) {
  Bytes bytes(sizeof(Times));
  std::memcpy(bytes.data(), &mine, sizeof(Times));
  std::vector<Times> all;
  for (const Bytes& one : TRY(pipe.control().gather("times", bytes))) {
    Times times;
    std::memcpy(&times, one.data(), sizeof(Times));
    all.push_back(times);
  }
  return all;
}

double slowest(const std::vector<Times>& all, const std::function<double(const Times&)>& of) {
  double most = 0;
  for (const Times& times : all) most = std::max(most, of(times));
  return most;
}

/// What the schedule takes with these stages over this link.
double predicted(const Plan& plan, const std::vector<Times>& all, const LinkOptions& link,
                 double message_bytes) {
  const auto m = static_cast<double>(plan.n_micro_batches);
  std::vector<StageSeconds> stages;
  for (const Times& times : all)
    stages.push_back({(times.forward + times.codec / 2) / m, (times.backward + times.codec / 2) / m});
  const HopSeconds hop{link.bytes_per_second > 0 ? message_bytes / link.bytes_per_second : 0, link.latency_s};
  return predicted_step_s(stages, static_cast<size_t>(plan.n_micro_batches), hop, hop);
}

Result<void> codec_shares(const Plan& plan, Net& net, Comm& pipe) {
  if (pipe.rank() == 0)
    fmt::print(
        "| codec | step s | layers s | codec s | codec / (codec + layers) | codec / step | bytes sent |\n"
        "|---|---|---|---|---|---|---|\n");
  for (const auto& [label, options] : codecs()) {
    const std::unique_ptr<Codec> codec = TRY(make_codec(options, net.boundary_width()));
    const Times mine = TRY(measure(plan, net, pipe, codec.get()));
    const std::vector<Times> all = TRY(everyones(mine, pipe));
    if (pipe.rank() > 0) continue;
    double bytes = 0;
    for (const Times& times : all) bytes += times.bytes_sent;
    fmt::print(
        "| {} | {:.2f} | {:.2f} | {:.3f} | {:.1f} % | {:.1f} % | {:.3g} |\n", label,
        slowest(all, [](const Times& t) { return t.step; }),
        slowest(all, [](const Times& t) { return t.forward + t.backward; }),
        slowest(all, [](const Times& t) { return t.codec; }),
        100 * slowest(all, [](const Times& t) { return t.codec / (t.codec + t.forward + t.backward); }),
        100 * slowest(all, [](const Times& t) { return t.codec / t.step; }), bytes);
    std::fflush(stdout);
  }
  return {};
}

struct Link {
  const char* label;
  LinkOptions options;
};

Result<void> link_times(const Plan& plan, const World& world, Net& net, Control& control) {
  const Link links[] = {{"none", {}},
                        {"20 ms", {.latency_s = 0.02}},
                        {"2 MB/s, 20 ms", {.bytes_per_second = 2e6, .latency_s = 0.02}},
                        {"200 kB/s, 20 ms", {.bytes_per_second = 2e5, .latency_s = 0.02}}};
  if (world.rank == 0)
    fmt::print(
        "{} stages, {} micro-batches: bubble of equal stages {:.1f} %\n\n"
        "| link | codec | step s | predicted s | idle | predicted | link busy s | bytes / rate s |\n"
        "|---|---|---|---|---|---|---|---|\n",
        world.size, plan.n_micro_batches, 100 * bubble_share(world.size, plan.n_micro_batches));
  for (const Link& link : links)
    for (const char* name : {"dense", "prf"}) {
      const std::string circuit = fmt::format("{} {}", link.label, name);
      std::unique_ptr<Transport> transport = TRY(make_tcp_transport(control, circuit));
      Comm pipe(circuit, control, std::move(transport), link.options);
      const std::unique_ptr<Codec> codec = TRY(make_codec({.name = name}, net.boundary_width()));
      const Times mine = TRY(measure(plan, net, pipe, codec.get()));
      const std::vector<Times> all = TRY(everyones(mine, pipe));
      TRY(pipe.shutdown());
      if (world.rank > 0) continue;
      const double message_bytes = static_cast<double>(
          codec->payload_bytes(plan.rows * plan.tokens, net.boundary_width(), Leg::kForward));
      const double step = slowest(all, [](const Times& t) { return t.step; });
      const double formula = predicted(plan, all, link.options, message_bytes);
      const double work = slowest(all, [](const Times& t) { return t.forward + t.backward + t.codec; });
      const double rate = link.options.bytes_per_second;
      fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.1f} % | {:.1f} % | {:.3f} | {:.3f} |\n", link.label, name,
                 step, formula, 100 * (1 - work / step), 100 * (1 - work / formula), mine.link_busy,
                 rate > 0 ? mine.bytes_sent / rate : 0);
      std::fflush(stdout);
    }
  return {};
}

Result<void> run(const World& world, const Plan& plan) {
  Circuits circuits = TRY(connect_circuits(world, {}));
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const ModelConfig config = TRY(read_model_config(*storage, plan.model));
  const std::shared_ptr<Net> net =
      TRY(load_net(*storage, plan.model, stage_of(config, world.rank, world.size)));
  if (plan.question == "codecs")
    TRY(codec_shares(plan, *net, *circuits.pipe));
  else
    TRY(link_times(plan, world, *net, *circuits.control));
  return circuits.shutdown();
}

}  // namespace
}  // namespace forebay::train

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  const std::string question = argc > 2 ? argv[1] : "";
  const forebay::Result<forebay::World> world = forebay::world_from_environment();
  if (!world || world->size < 2 || (question != "codecs" && question != "link")) {
    fmt::print(stderr,
               "usage: forebay launch -n N -- pipeline_bench codecs|link MODEL [micro-batches rows "
               "tokens steps]\n");
    return 2;
  }
  forebay::train::Plan plan{.question = question, .model = argv[2]};
  int64_t* const numbers[] = {&plan.n_micro_batches, &plan.rows, &plan.tokens, &plan.n_steps};
  for (int i = 3; i < std::min(argc, 7); ++i) *numbers[i - 3] = std::max(1, std::atoi(argv[i]));
  const forebay::Result<void> done = forebay::train::run(*world, plan);
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
