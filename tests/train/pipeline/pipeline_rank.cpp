// One stage of a toy model as a process: pipeline_rank BACKEND, told who it is by its environment. Compares
// itself with the pipeline in one process and prints the differences; with a second argument it dies in the
// middle of a step instead, when its rank is that.
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "compare.h"
#include "core/world.h"
#include "train/comm/circuits.h"

namespace forebay::train {
namespace {

Result<void> run(const World& world, Backend backend, int dies) {
  CommOptions options;
  options.backend = backend;
  options.timeouts = {.pg = Milliseconds(10'000),
                      .step = Milliseconds(40'000),
                      .init = Milliseconds(60'000),
                      .silence = Milliseconds(20'000)};
  Circuits circuits = TRY(connect_circuits(world, options));
  if (dies >= 0) {
    ToyNet net(ToyShape{}, split_blocks(4, world.size).value()[static_cast<size_t>(world.rank)]);
    const std::unique_ptr<StageRunner> runner = TRY(make_stage_runner(net, *circuits.pipe, {}));
    const std::vector<MicroBatch> batches = toy_batches(4, {});
    for (int64_t step = 0; step < 3; ++step) {
      if (step == 1 && dies == world.rank) ::_exit(9);
      TRY(runner->train(batches, step,
                        [&](size_t i, const torch::Tensor& x) { return toy_loss(x, batches[i].ids_BT); }));
    }
    return circuits.shutdown();
  }
  struct Case {
    const char* name;
    ToyShape shape;
    View view;
  };
  for (const Case& c : {Case{"codec", {.has_auxiliary = true}, View::kCodec},
                        Case{"dense", {.has_auxiliary = true}, View::kDense},
                        Case{"tied", {.has_auxiliary = true, .ties_head = true}, View::kCodec}}) {
    const Difference difference = TRY(compare_with_local(*circuits.pipe, c.shape, c.view));
    fmt::print("{} {}: logits {:g}, gradients {:g}, norm {:g}\n", circuits.pipe->backend(), c.name,
               difference.logits, difference.gradients, difference.norm);
  }
  // The slow circuit beside it: signs as bytes, sums in f32.
  std::vector<float> values = {1, static_cast<float>(world.rank)};
  TRY(circuits.anchor->allreduce_f32(values));
  Bytes signs(1000, static_cast<uint8_t>(world.rank));
  TRY(circuits.anchor->broadcast(signs, 1));
  TRY(expected(values[0] == static_cast<float>(world.size) && signs == Bytes(1000, 1),
               "the anchor's circuit"));
  return circuits.shutdown();
}

}  // namespace
}  // namespace forebay::train

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  const forebay::Result<forebay::World> world = forebay::world_from_environment();
  if (argc < 2 || !world) return 2;
  using forebay::train::Backend;
  Backend backend = Backend::kTcp;
  if (std::strcmp(argv[1], "gloo") == 0) backend = Backend::kGloo;
  if (std::strcmp(argv[1], "nccl") == 0) backend = Backend::kNccl;
  const forebay::Result<void> done = forebay::train::run(*world, backend, argc > 2 ? std::atoi(argv[2]) : -1);
  if (done) return 0;
  fmt::print("{}\n", done.error().message);
  return 3;
}
