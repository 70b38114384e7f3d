#include "lab/runner.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "core/child_process.h"
#include "core/sha256.h"
#include "lab/registration.h"
#include "lab/verdicts.h"

namespace forebay::lab {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

Json json_of(const RecipeChange& change) {
  return {{"key", change.key}, {"from", change.from}, {"to", change.to}};
}

Json json_of(const Registration& registration, const Cell& cell) {
  Json gates = Json::array(), kill = Json::array(), implied = Json::array();
  for (const Gate& gate : cell.gates)
    gates.push_back({{"name", gate.name},
                     {"metric", gate.metric},
                     {"steps", {gate.first, gate.last}},
                     {"side", gate.side == Side::kAtMost ? "at most" : "at least"},
                     {"bar", gate.bar},
                     {"demoted", gate.demoted}});
  for (const KillTrigger& trigger : cell.kill)
    kill.push_back({{"name", trigger.name},
                    {"reason", name_of(trigger.reason)},
                    {"limit", trigger.limit},
                    {"step", trigger.step}});
  for (const RecipeChange& change : registration.implied) implied.push_back(json_of(change));
  Json out = {{"cell", cell.name},
              {"parent", cell.parent},
              {"role", cell.role == Role::kReference ? "reference" : "entrant"},
              {"registration", registration.hash},
              {"variable", registration.variable ? json_of(*registration.variable) : Json()},
              {"implied", implied},
              {"gates", gates},
              {"kill", kill},
              {"resolved", registration.resolved}};
  return out;
}

/// Writes what is new; refuses what a started cell would have to be instead.
Result<void> record_registrations(Records& records, const LabProgram& program,
                                  const std::vector<Registration>& registrations) {
  for (const Registration& registration : registrations) {
    const Json* before = records.last("registered", "cell", registration.cell);
    if (before != nullptr && (*before)["registration"] == registration.hash) continue;
    const Json* started = records.last("started", "cell", registration.cell);
    if (before != nullptr && started != nullptr)
      return Error{
          Code::kInvalidArgument,
          fmt::format("cell {} was started as {:.12} and is {:.12} now: give the new one another name",
                      registration.cell, (*before)["registration"].get<std::string>(), registration.hash)};
    if (before != nullptr)
      TRY(records.append("correction", {{"cell", registration.cell},
                                        {"of", (*before)["n"]},
                                        {"note", "registered anew before it was started"}}));
    TRY(records.append("registered", json_of(registration, *program.find(registration.cell))));
  }
  return {};
}

/// Runs one cell to its end.
class CellRun {
 public:
  CellRun(Storage& storage, const LabProgram& program, const Cell& cell, const Path& folder, Records& records,
          const RunOptions& options)
      : program_(program),
        cell_(cell),
        folder_(folder),
        records_(records),
        options_(options),
        storage_(storage),
        reader_(storage, folder / "metrics.jsonl"),
        spent_before_(cost_of(records)) {}

  /// The outcome: "complete", "killed", "failed" or "budget".
  Result<std::string> run(std::stop_token stop);

 private:
  Result<void> record_cost(Clock::time_point now);
  double since_start(Clock::time_point now) const;  // device seconds
  std::optional<Kill> reason_to_stop(Clock::time_point now) const;
  Result<std::string> ended(int code, const std::optional<Kill>& kill);

  const LabProgram& program_;
  const Cell& cell_;
  const Path folder_;
  Records& records_;
  const RunOptions& options_;
  Storage& storage_;
  SeriesReader reader_;
  const double spent_before_;
  double before_this_start_ = 0;  // device seconds of this cell's earlier starts
  Clock::time_point start_, last_cost_, last_step_;
};

Result<void> CellRun::record_cost(Clock::time_point now) {
  const double seconds = Seconds(now - last_cost_).count() * static_cast<double>(program_.devices);
  last_cost_ = now;
  return records_.append("cost", {{"cell", cell_.name}, {"device_s", seconds}});
}

double CellRun::since_start(Clock::time_point now) const {
  return Seconds(now - start_).count() * static_cast<double>(program_.devices);
}

std::optional<Kill> CellRun::reason_to_stop(Clock::time_point now) const {
  const double spent = since_start(now);
  if (spent_before_ + spent >= program_.budget_s)
    return Kill{KillReason::kBudget, fmt::format("{:.0f} device seconds, the program's budget is {:.0f}",
                                                 spent_before_ + spent, program_.budget_s)};
  if (cell_.limit_s > 0 && before_this_start_ + spent >= cell_.limit_s)
    return Kill{KillReason::kTimeLimit, fmt::format("{:.0f} device seconds, the cell's limit is {:.0f}",
                                                    before_this_start_ + spent, cell_.limit_s)};
  for (const KillTrigger& trigger : cell_.kill)
    if (std::optional<Kill> kill = check(trigger, reader_.series(), now - last_step_)) return kill;
  return std::nullopt;
}

Result<std::string> CellRun::ended(int code, const std::optional<Kill>& kill) {
  TRY(reader_.poll());
  std::string outcome = code == 0 ? "complete" : "failed";
  if (kill) outcome = kill->reason == KillReason::kBudget ? "budget" : "killed";
  Json body = {{"cell", cell_.name},
               {"outcome", outcome},
               {"exit_code", code},
               {"steps", reader_.series().last_step()}};
  if (kill) {
    body["reason"] = name_of(kill->reason);
    body["detail"] = kill->detail;
  }
  if (storage_.exists(folder_ / "metrics.jsonl")) {
    const std::vector<std::byte> metrics = TRY(read_file(storage_, folder_ / "metrics.jsonl"));
    body["metrics"] = to_hex(sha256(metrics));
  }
  TRY(records_.append("ended", body));
  return outcome;
}

Result<std::string> CellRun::run(std::stop_token stop) {
  for (const Json& record : records_.all())
    if (record["kind"] == "cost" && record["cell"] == cell_.name)
      before_this_start_ += record["device_s"].get<double>();
  TRY(storage_.make_directory(folder_));
  const bool resume = TRY(reader_.poll()) > 0;
  const std::vector<std::string> command =
      command_of(program_, cell_, options_.self, folder_,
                 resume ? std::vector<std::string>{"--resume"} : std::vector<std::string>{});
  TRY(records_.append("started", {{"cell", cell_.name}, {"resume", resume}, {"command", command}}));
  start_ = last_cost_ = last_step_ = Clock::now();
  Result<ChildProcess> started = ChildProcess::start({command, {}, folder_ / "log.txt"});
  if (!started) return std::move(started).error().in("cell " + cell_.name);
  ChildProcess child = std::move(started).value();

  while (true) {
    const std::optional<int> code = child.finished();
    const Clock::time_point now = Clock::now();
    if (TRY(reader_.poll()) > 0) last_step_ = now;
    if (!code && now - last_cost_ >= options_.cost_record)
      options_.say(fmt::format("{}: step {}, {:.0f} of {:.0f} device seconds spent", cell_.name,
                               reader_.series().last_step(), spent_before_ + since_start(now),
                               program_.budget_s));
    if (code || stop.stop_requested() || now - last_cost_ >= options_.cost_record) TRY(record_cost(now));
    if (stop.stop_requested()) {
      child.stop(options_.grace);
      return Error{Code::kCancelled,
                   fmt::format("interrupted in cell {}; run it again to go on", cell_.name)};
    }
    // What came with the last lines counts, even if the process has ended since.
    std::optional<Kill> kill = reason_to_stop(now);
    if (code && kill && kill->reason == KillReason::kBudget) kill.reset();
    if (kill && !code) {
      options_.say(fmt::format("{}: killed, {}: {}", cell_.name, name_of(kill->reason), kill->detail));
      const int killed = child.stop(options_.grace);
      TRY(record_cost(Clock::now()));
      return ended(killed, kill);
    }
    if (code) return ended(*code, kill);
    std::this_thread::sleep_for(options_.poll);
  }
}

/// Whether the records say that there is nothing left to do for it.
bool is_complete(const Records& records, std::string_view cell) {
  const Json* last = records.last("ended", "cell", cell);
  return last != nullptr && ((*last)["outcome"] == "complete" || (*last)["outcome"] == "killed");
}

}  // namespace

double cost_of(const Records& records) {
  double seconds = 0;
  for (const Json& record : records.all())
    if (record["kind"] == "cost") seconds += record["device_s"].get<double>();
  return seconds;
}

Result<RunEnd> run_program(Storage& storage, const LabProgram& program, const Path& directory,
                           const RunOptions& options, std::stop_token stop) {
  TRY(storage.make_directory(directory / "cells"));
  const std::unique_ptr<FileLock> lock = TRY(storage.lock(directory / "lock", false));
  if (lock == nullptr)
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: another lab run works in this directory", directory.string())};
  Records records = TRY(Records::open(storage, directory / "records.jsonl"));
  const std::vector<Registration> registrations = TRY(register_cells(program, options.self, directory));
  if (records.all().empty())
    TRY(records.append("program", {{"name", program.name},
                                   {"control", program.control},
                                   {"budget_s", program.budget_s},
                                   {"devices", program.devices},
                                   {"wire_bits", program.wire_bits},
                                   {"horizon", program.horizon}}));
  TRY(record_registrations(records, program, registrations));

  RunEnd end = RunEnd::kDone;
  for (const Cell& cell : program.cells) {
    if (is_complete(records, cell.name)) {
      options.say(fmt::format("{}: complete already", cell.name));
      continue;
    }
    if (const double spent = cost_of(records); spent >= program.budget_s) {
      options.say(fmt::format("{}: not started, {:.0f} of {:.0f} device seconds are spent", cell.name, spent,
                              program.budget_s));
      end = RunEnd::kBudget;
      break;
    }
    options.say(fmt::format("{}: runs", cell.name));
    CellRun run(storage, program, cell, directory / "cells" / cell.name, records, options);
    const std::string outcome = TRY(run.run(stop));
    options.say(fmt::format("{}: {}", cell.name, outcome));
    if (outcome == "failed") end = RunEnd::kFailures;
    if (outcome == "budget") {
      end = RunEnd::kBudget;
      break;
    }
  }
  TRY(record_verdicts(storage, program, directory, records));
  return end;
}

}  // namespace forebay::lab
