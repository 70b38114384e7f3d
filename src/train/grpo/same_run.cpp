#include "train/grpo/same_run.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "core/hash.h"

namespace forebay::train {
namespace {

/// How long, how fast, how often, and on what: never change what is learnt, but for the last bits that
/// another device or number of threads rounds otherwise.
constexpr std::string_view kFree[] = {
    "run.steps", "run.checkpoint_every", "run.device", "run.threads", "sampler.threads", "sampler.sequences",
    "sampler.context", "sampler.window", "validation.", "ledger.", "pipeline.backend", "timeouts.", "link.",
    "anchor_link.",
    // What a run began with is in its checkpoint; the words are compared by themselves.
    "model.path", "model.tokenizer"};

bool begins_with_one_of(std::string_view key, std::span<const std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [key](std::string_view start) { return key.starts_with(start); });
}

/// What one codec looks at.
std::set<std::string_view> keys_of_codec(std::string_view codec) {
  if (codec == "prf") return {"wire.keep", "wire.k", "wire.scope", "wire.gain"};
  if (codec == "sr" || codec == "rn") return {"wire.bits", "wire.group", "wire.share"};
  if (codec == "prf-sr")
    return {"wire.keep", "wire.k", "wire.scope", "wire.gain", "wire.bits", "wire.group", "wire.share"};
  if (codec == "powersgd") return {"wire.keep", "wire.rank", "wire.accumulate"};
  if (codec.starts_with("frlr")) return {"wire.rank", "wire.k_residual", "wire.gamma_max", "wire.accumulate"};
  return {};
}

/// Whether `key` has nothing to act on, under settings that have all keys.
bool is_idle(std::string_view key, const ResolvedSettings& settings) {
  const auto is = [&](const char* name, std::string_view value) {
    const auto at = settings.find(name);
    return at != settings.end() && (at->second == value || at->second == fmt::format("\"{}\"", value));
  };
  const bool has_controller = !is("controller.enabled", "false"), has_brake = !is("brake.enabled", "false");
  if (key.starts_with("controller.") && key != "controller.enabled") return !has_controller;
  if (key.starts_with("brake.") && key != "brake.enabled") return !has_brake;
  if (key == "probe.every") return !has_controller && !has_brake;
  if (key.starts_with("anchor.") && key != "anchor.every") {
    const bool of_mask = key.starts_with("anchor.mask_");
    return is("anchor.every", "0") || (of_mask && is("anchor.masked", "false"));
  }
  if (key == "cvc.lambda") return is("cvc.mode", "none");
  if (key == "cvc.delta") return !is("cvc.mode", "dc-shaped");
  // Rows in f32 are the same however a model is cut.
  if (key == "pipeline.stages") return is("wire.codec", "none");
  if (key.starts_with("wire.") && key != "wire.codec") {
    const auto at = settings.find("wire.codec");
    std::string codec = at == settings.end() ? "none" : at->second;
    std::erase(codec, '"');
    if (key == "wire.refresh_every" || key == "wire.publish")
      return codec != "powersgd" && !codec.starts_with("frlr");
    return !keys_of_codec(codec).contains(key);
  }
  return false;
}

Result<ResolvedSettings> defaults() {
  Recipe recipe = TRY(Recipe::parse("", "defaults", {}));
  TRY(GrpoSettings::read(recipe));
  return recipe.values();
}

}  // namespace

Result<std::vector<ChangedSetting>> check_same_run(const ResolvedSettings& before,
                                                   const ResolvedSettings& now,
                                                   const std::string& directory) {
  const ResolvedSettings usual = TRY(defaults());
  ResolvedSettings was = usual;
  for (const auto& [key, value] : before) was[key] = value;
  std::vector<ChangedSetting> changed;
  for (const auto& [key, value] : was) {
    const auto at = now.find(key);
    if (at != now.end() && at->second == value) continue;
    const std::string is = at == now.end() ? "not known any more" : at->second;
    if (!begins_with_one_of(key, kFree) && !(is_idle(key, was) && is_idle(key, now)))
      return Error{Code::kInvalidArgument,
                   fmt::format("{} is {}, the run in {} began with {}: that changes its results; go on with "
                               "{}, or start another run",
                               key, is, directory, value, value)};
    changed.push_back({key, value, is});
  }
  return changed;
}

std::string results_hash(const ResolvedSettings& all) {
  std::string text;
  for (const auto& [key, value] : all)
    if (!begins_with_one_of(key, kFree) && !is_idle(key, all)) text += fmt::format("{} = {}\n", key, value);
  return fmt::format("{:016x}", fast_checksum(std::as_bytes(std::span(text))));
}

}  // namespace forebay::train
