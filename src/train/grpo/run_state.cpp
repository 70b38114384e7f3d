// A run as a checkpoint, and back. The leading process has the file; tensors come from and go to the stages.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/grpo/policy.h"
#include "train/grpo/run_file.h"
#include "train/grpo/run_parts.h"
#include "train/grpo/same_run.h"
#include "train/grpo/tied_copies.h"

namespace forebay::train {
namespace {

using Json = nlohmann::json;

void add(NamedTensors& to, std::string_view prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) to[std::string(prefix) + name] = tensor;
}

/// Those below a prefix, without it.
NamedTensors below(const NamedTensors& all, std::string_view prefix) {
  NamedTensors some;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) some[name.substr(prefix.size())] = tensor;
  return some;
}

NamedTensors parameters_of(const Net& net) {
  NamedTensors map;
  for (const auto& item : net.named_parameters()) map[item.key()] = item.value();
  return map;
}

/// What a stage puts into a checkpoint and takes out of it: the tensors themselves.
NamedTensors own_tensors(RunParts& run) {
  NamedTensors mine;
  add(mine, "policy.", parameters_of(*run.policy));
  add(mine, "reference.", parameters_of(*run.reference));
  add(mine, "optimizer.", run.learner->optimizer().state());
  if (run.anchor) add(mine, "anchor.", run.anchor->state());
  return mine;
}

Result<void> fill(const NamedTensors& from, const NamedTensors& into, const Path& path) {
  const torch::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : into) {
    const auto found = from.find(name);
    if (found == from.end() || found->second.sizes() != tensor.sizes())
      return Error{Code::kCorrupt,
                   fmt::format("{}: tensor {} is missing or of another shape", path.string(), name)};
    torch::Tensor target = tensor;
    target.copy_(found->second);
  }
  return {};
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

std::map<std::string, std::string> settings_of(const std::string& json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  std::map<std::string, std::string> settings;
  if (object.is_object())
    for (const auto& [key, value] : object.items())
      if (value.is_string()) settings[key] = value.get<std::string>();
  return settings;
}

}  // namespace

Result<void> RunParts::save() {
  // The reference never changes and is here already.
  NamedTensors mine = own_tensors(*this);
  std::erase_if(mine, [](const auto& entry) { return entry.first.starts_with("reference."); });
  const bool has_stale = feed->has_stale(step) && feed->held_step() >= 0;
  if (has_stale) add(mine, "sampler.", feed->held());
  TRY(check_copies(mine, *policy, *team));
  RunFile file;
  file.tensors = TRY(team->collect(without_copies(std::move(mine), *policy)));
  add(file.tensors, "reference.", whole_reference);
  add(file.tensors, "codec.", TRY(views->state()));
  if (!team->leads()) return {};

  const Json values(recipe.values());
  Json brake_state = nullptr;
  if (brake) {
    const LrBrake::State s = brake->state();
    brake_state = {{"gaps", s.gaps}, {"braking", s.braking}, {"fired", s.n_fired}};
  }
  Json anchor_state = nullptr;
  if (anchor) {
    const AnchorCounts counts = anchor->counts();
    anchor_state = {{"ticks", counts.ticks}, {"fires", counts.fires}, {"mask", anchor->mask_hash()}};
  }
  file.facts = {{"step", std::to_string(step)},
                {"recipe", values.dump()},
                {"reference_hash", reference_hash},
                {"words_hash", fmt::format("{:016x}", drawer->sampler().words_hash())},
                {"optimizer_steps", std::to_string(learner->optimizer().n_steps())},
                {"next_item", std::to_string(step * settings.grpo.prompts)},
                // Shortest digits that read back as the same number.
                {"beta", Json(controller ? controller->beta() : settings.objective.beta).dump()},
                {"brake", brake_state.dump()},
                {"anchor", anchor_state.dump()}};
  if (has_stale) file.facts["sampler_step"] = std::to_string(feed->held_step());
  return write_run_file(storage, run_file_path(directory, step), file);
}

namespace {

/// What the leader reads and everyone gets to know.
struct Opened {
  Path path;
  RunFile file;
  std::vector<ChangedSetting> changed;
};

Result<Opened> open_last(RunParts& run) {
  const std::optional<int64_t> last = TRY(last_run_file(run.storage, run.directory));
  if (!last) return Error{Code::kNotFound, run.directory.string() + ": no checkpoint to go on from"};
  Opened opened;
  opened.path = run_file_path(run.directory, *last);
  opened.file = TRY(read_run_file(run.storage, opened.path));
  std::map<std::string, std::string>& facts = opened.file.facts;
  const auto before = settings_of(facts["recipe"]);
  if (before.empty())
    return Error{Code::kCorrupt, opened.path.string() + ": a checkpoint without its recipe"};
  opened.changed = TRY(check_same_run(before, run.recipe.values(), run.directory.string()));
  const std::string words = fmt::format("{:016x}", run.drawer->sampler().words_hash());
  if (!facts["words_hash"].empty() && facts["words_hash"] != words)
    return Error{Code::kInvalidArgument,
                 fmt::format("model.path is '{}': its vocabulary has hash {}, the run in {} began with {}",
                             run.settings.model.path, words, run.directory.string(), facts["words_hash"])};
  if (facts["step"] != std::to_string(*last))
    return Error{Code::kCorrupt, fmt::format("{}: it says step {}", opened.path.string(), facts["step"])};
  return opened;
}

}  // namespace

Result<void> RunParts::go_on() {
  Opened opened;
  if (team->leads()) opened = TRY(open_last(*this));
  const std::string text = Json(opened.file.facts).dump();
  const Bytes shared = TRY(team->share(Bytes(text.begin(), text.end()), 0));
  std::map<std::string, std::string> facts = settings_of(std::string(shared.begin(), shared.end()));
  const auto parsed = [&](const char* fact) {
    return Json::parse(facts[fact], nullptr, /*allow_exceptions=*/false);
  };
  const Json beta = parsed("beta"), steps = parsed("optimizer_steps"), at = parsed("step"),
             braked = parsed("brake"), anchored = parsed("anchor"), sampler_step = parsed("sampler_step");
  if (!beta.is_number() || !steps.is_number_integer() || !at.is_number_integer())
    return Error{Code::kCorrupt, opened.path.string() + ": facts that are no numbers"};

  // The reference first: masks are made from it.
  const auto take = [&](const NamedTensors& into) -> Result<void> {
    return fill(TRY(team->hand_out(opened.file.tensors, names_of(into))), into, opened.path);
  };
  NamedTensors nets;
  add(nets, "policy.", parameters_of(*policy));
  add(nets, "reference.", parameters_of(*reference));
  TRY(take(nets));
  TRY(finish());
  if (team->leads() && facts["reference_hash"] != reference_hash)
    return Error{Code::kCorrupt, fmt::format("{}: the reference has hash {}, the run began with {}",
                                             opened.path.string(), reference_hash, facts["reference_hash"])};
  NamedTensors rest = own_tensors(*this);
  std::erase_if(rest, [](const auto& entry) {
    return entry.first.starts_with("policy.") || entry.first.starts_with("reference.") ||
           entry.first.starts_with("anchor.");
  });
  TRY(take(rest));
  if (anchor) {
    if (!anchored.is_object())
      return Error{Code::kCorrupt, opened.path.string() + ": no state of the anchor"};
    if (team->leads() && anchored.value("mask", std::string()) != anchor->mask_hash())
      return Error{Code::kInternal,
                   fmt::format("{}: the safe masks have hash {}, the run began with {}: use the build of "
                               "libtorch that it began with",
                               opened.path.string(), anchor->mask_hash(), anchored.value("mask", ""))};
    NamedTensors averages;
    add(averages, "anchor.", anchor->state());
    const NamedTensors taken = TRY(team->hand_out(opened.file.tensors, names_of(averages)));
    TRY(anchor->restore(below(taken, "anchor."), {.ticks = anchored.value("ticks", int64_t{0}),
                                                  .fires = anchored.value("fires", int64_t{0})}));
  }
  TRY(views->restore(below(opened.file.tensors, "codec.")));
  if (sampler_step.is_number_integer()) {
    NamedTensors held;
    add(held, "sampler.", parameters_of(*policy));
    const NamedTensors taken = TRY(team->hand_out(opened.file.tensors, names_of(held)));
    feed->restore(below(taken, "sampler."), sampler_step.get<int64_t>());
  }
  learner->optimizer().set_n_steps(steps.get<int64_t>());
  step = at.get<int64_t>();
  if (controller) controller->restore(beta.get<double>());
  if (brake && braked.is_object())
    brake->restore({braked.value("gaps", std::vector<double>()), braked.value("braking", false),
                    braked.value("fired", int64_t{0})});
  if (!team->leads()) return {};
  MetricsRow row;
  row.texts.emplace_back("event", "resume");
  for (const ChangedSetting& setting : opened.changed)
    row.texts.emplace_back(setting.key, fmt::format("{} -> {}", setting.before, setting.now));
  row.add("from_step", static_cast<double>(step));
  return log->write(row);
}

}  // namespace forebay::train
