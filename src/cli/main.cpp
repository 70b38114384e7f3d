// The forebay program: its commands.
#include "cli/entry.h"

namespace forebay::cli {
namespace {

std::vector<CommandInfo> all_commands() {
  // One a line, in the order of the overview.
  // clang-format off
  return {
      run_command(),
      serve_command(),
      connect_command(),
      inspect_command(),
      plan_command(),
      doctor_command(),
      convert_command(),
      synth_command(),
      kld_command(),
      scr_test_command(),
      route_curve_command(),
      replay_command(),
      bench_command(),
      pack_command(),
      session_command(),
      train_command(),
      launch_command(),
      lab_command(),
      tokenize_command(),
      template_command(),
      logits_command(),
  };
  // clang-format on
}

Program program() {
  return {.name = "forebay",
          .version = FOREBAY_VERSION,
          .summary = "Runs mixture-of-experts language models from GGUF files.",
          .examples = {{"forebay run -p \"What is 37 + 58?\"", "ask once"},
                       {"forebay run", "chat"},
                       {"forebay inspect model.gguf", "what is in a file"}},
          .commands = all_commands()};
}

}  // namespace
}  // namespace forebay::cli

int main(int argc, char** argv) {
  return forebay::cli::run_program(forebay::cli::program, {argv, static_cast<size_t>(argc)});
}
