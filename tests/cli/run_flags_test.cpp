// Every documented flag of `forebay run` changes something that can be seen. A flag without a row here fails.
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

using Arguments = std::vector<std::string>;

/// What a run shows, apart from what differs from run to run.
std::string shown(const Arguments& arguments) {
  Arguments all = {"run"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Finished finished = run_program(all);
  std::string out = std::to_string(finished.code) + "\n";
  const nlohmann::json json = nlohmann::json::parse(finished.out, nullptr, false);
  if (!json.is_object()) {
    // Rates and times are numbers.
    std::string text = out + finished.out + finished.err;
    std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    return text;
  }
  for (const char* key :
       {"model", "text", "reasoning", "finish_reason", "prompt_tokens", "ids", "logprobs", "reserved_bytes"})
    if (json.contains(key)) out += std::string(key) + ": " + json[key].dump() + "\n";
  if (json.contains("experts"))
    for (const char* key : {"hits", "prefetched", "io", "budget_bytes"})
      out += json["experts"][key].dump() + "\n";
  return out;
}

Arguments sampled() {
  return {"-m", scripted_model(), "--raw", "-p",      "A", "-n",     "80", "--temp",
          "1",  "--top-k",        "0",     "--top-p", "1", "--seed", "1",  "--json"};
}
Arguments with(Arguments base, const Arguments& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}
/// `base` with another value for `flag`.
Arguments changed(Arguments base, const std::string& flag, const std::string& value) {
  for (size_t i = 0; i + 1 < base.size(); ++i)
    if (base[i] == flag) base[i + 1] = value;
  return base;
}

std::set<std::string> documented_flags() {
  std::set<std::string> flags;
  const std::string help = run_program({"run", "--help"}).out;
  for (const std::string& line : lines_of(help.substr(help.find("usage:")))) {
    const size_t at = line.find("--");
    if (!line.starts_with("  ") || at > 6 || at == std::string::npos) continue;
    flags.insert(line.substr(at, line.find(' ', at) - at));
  }
  return flags;
}

TEST(RunFlags, EachChangesSomethingThatShows) {
  const TemporaryDirectory directory;
  const std::string other = (directory / "other.gguf").string();
  write_scripted_model(other, {.sharpness = 0.2f});
  const Arguments chat = {"-m", scripted_model(), "-p", "x", "--temp", "0", "--json"};
  const Arguments plain = {"-m", scripted_model(), "-p", "x", "--temp", "0", "-n", "5"};
  const Arguments s = sampled();
  const Arguments penalised = with(s, {"--repeat-penalty", "1.5"});
  // Few choices: text that repeats itself.
  const Arguments dry = with(changed(changed(s, "--top-k", "2"), "-n", "150"), {"--dry-multiplier", "0.5"});

  // Experts need a mixture: the embedded model.
  const Arguments streamed = {"-m",     FOREBAY_SOURCE_DIR "/models/pebble.gguf",
                              "-p",     "What is 37 + 58?",
                              "--temp", "0",
                              "-n",     "20",
                              "--json", "-c",
                              "512",    "--experts",
                              "stream", "--budget",
                              "24M"};
  // In chunks, so that something is in memory when the second one is routed.
  const Arguments long_prompt = with(
      changed(
          streamed, "-p",
          "The first part of this question is long, so that most of it is not among the last tokens. It says "
          "that rivers are wide, that winters are cold, and that a train takes an hour. What is 37 + 58?"),
      {"--chunk", "8", "--logprobs", "1"});
  const Arguments resident(streamed.begin(), streamed.end() - 4);

  const std::string curve = (directory / "curve.json").string();
  std::ofstream(curve) << R"({"format": "forebay-route-curve-1", "model": "0000000000000000", "points": [
    {"route_bias": 1, "mean_kld": 0, "ci_high": 0, "p99_kld": 0, "misses_per_token": 0, "bytes_per_token": 0}]})";
  // Prompts of some length are kept.
  const Arguments cached =
      with(changed(plain, "-p", std::string(200, 'x')), {"--cache-dir", (directory / "sized").string()});

  const Arguments lenient = changed(dry, "--dry-multiplier", "0.05");

  const std::map<std::string, std::pair<Arguments, Arguments>> rows = {
      {"--model", {s, changed(s, "-m", other)}},
      {"--prompt", {s, changed(s, "-p", "B")}},
      {"--system", {chat, with(chat, {"--system", "be brief"})}},
      {"--think", {chat, with(chat, {"--think", "off"})}},
      {"--raw", {chat, with(chat, {"--raw", "-n", "4"})}},
      {"--tokens", {s, changed(s, "-n", "3")}},
      {"--context", {s, with(s, {"-c", "20"})}},
      {"--stop", {chat, with(chat, {"--stop", "2"})}},
      {"--json", {plain, with(plain, {"--json"})}},
      {"--json-object", {plain, with(plain, {"--json-object"})}},
      {"--json-schema", {plain, with(plain, {"--json-schema", "{\"type\": \"null\"}"})}},
      {"--logprobs", {chat, with(chat, {"--logprobs", "1"})}},
      {"--logit-bias", {s, with(s, {"--logit-bias", "66=-inf"})}},
      {"--repeat-penalty", {s, penalised}},
      {"--presence-penalty", {s, with(s, {"--presence-penalty", "2"})}},
      {"--frequency-penalty", {s, with(s, {"--frequency-penalty", "1"})}},
      {"--penalty-last-n", {penalised, with(penalised, {"--penalty-last-n", "3"})}},
      {"--dry-multiplier", {changed(dry, "--dry-multiplier", "0"), dry}},
      {"--dry-base", {lenient, with(lenient, {"--dry-base", "20"})}},
      {"--dry-allowed-length", {dry, with(dry, {"--dry-allowed-length", "5"})}},
      {"--dry-last-n", {dry, with(dry, {"--dry-last-n", "8"})}},
      {"--dry-breaker", {dry, with(dry, {"--dry-breaker", "Q", "--dry-breaker", "W", "--dry-breaker", "A"})}},
      {"--top-k", {s, changed(s, "--top-k", "1")}},
      {"--typical", {s, with(s, {"--typical", "0.2"})}},
      {"--top-p", {s, changed(s, "--top-p", "0.2")}},
      {"--min-p", {s, with(s, {"--min-p", "0.5"})}},
      {"--temp", {s, changed(s, "--temp", "0.2")}},
      {"--seed", {s, changed(s, "--seed", "2")}},
      {"--chunk", {s, with(s, {"--chunk", "8"})}},
      {"--experts", {resident, with(resident, {"--experts", "resident"})}},
      {"--budget", {streamed, changed(streamed, "--budget", "21M")}},
      {"--trunk", {with(resident, {"--trunk", "map"}), with(resident, {"--trunk", "copy"})}},
      {"--policy", {streamed, with(streamed, {"--policy", "lru"})}},
      {"--prefetch", {streamed, with(streamed, {"--prefetch", "off"})}},
      // Which core runs what shows in no result: the settings say so.
      {"--pin", {with(plain, {"-v"}), with(plain, {"-v", "--pin", "on"})}},
      {"--io", {streamed, with(streamed, {"--io", "threads"})}},
      {"--route-bias", {streamed, with(streamed, {"--route-bias", "50"})}},
      {"--route-bias-prompt", {long_prompt, with(long_prompt, {"--route-bias-prompt", "50"})}},
      // Each needs the other; the curve is another model's.
      {"--max-kld", {streamed, with(streamed, {"--max-kld", "0.1"})}},
      {"--route-curve", {streamed, with(streamed, {"--max-kld", "0.1", "--route-curve", curve})}},
      {"--stats", {plain, with(plain, {"--stats", "json"})}},
      {"--pack", {streamed, with(streamed, {"--pack", FOREBAY_SOURCE_DIR "/models/pebble.gguf"})}},
      {"--trace", {streamed, with(streamed, {"--trace", "/dev/full"})}},
      {"--activations",
       {with(resident, {"--logprobs", "1"}), with(resident, {"--logprobs", "1", "--activations", "f32"})}},
      {"--kv", {with(resident, {"--logprobs", "1"}), with(resident, {"--logprobs", "1", "--kv", "f32"})}},
      {"--memory-limit", {s, with(s, {"--memory-limit", "1M"})}},
      {"--reference-kernels",
       {with(s, {"--logprobs", "8"}), with(s, {"--logprobs", "8", "--reference-kernels"})}},
      {"--save-session", {plain, with(plain, {"--save-session", "/dev/null/none"})}},
      {"--load-session", {plain, with(plain, {"--load-session", "/dev/null/none"})}},
      {"--cache-dir", {plain, with(plain, {"--cache-dir", "/dev/null/none"})}},
      {"--cache-size", {cached, with(cached, {"--cache-size", "1"})}},
      {"--reuse-edits", {resident, with(resident, {"--reuse-edits", "on"})}},
      {"--quiet", {plain, with(plain, {"-q"})}},
      {"--verbose", {plain, with(plain, {"-v"})}},
  };
  // Many rows change the same run: it is made once.
  std::map<Arguments, std::string> unchanged;
  for (const auto& [flag, runs] : rows) {
    const auto [known, is_new] = unchanged.try_emplace(runs.first);
    if (is_new) known->second = shown(runs.first);
    EXPECT_NE(known->second, shown(runs.second)) << flag;
  }

  // Threads change no result; how many there are is said with -v.
  const auto threads = [&](const char* n) {
    return run_program({"run", "-m", scripted_model(), "-p", "x", "-v", "-n", "1", "-t", n}).err;
  };
  EXPECT_NE(threads("1").find("threads = 1\n"), std::string::npos);
  EXPECT_NE(threads("3").find("threads = 3\n"), std::string::npos);

  std::set<std::string> tested = {"--threads"};
  for (const auto& row : rows) tested.insert(row.first);
  EXPECT_EQ(documented_flags(), tested);
}

TEST(RunFlags, SameFlagsSameResult) {
  EXPECT_EQ(shown(sampled()), shown(sampled()));
}

}  // namespace
}  // namespace forebay::cli
