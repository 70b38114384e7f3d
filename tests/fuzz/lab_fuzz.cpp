/// Any bytes as records, as metrics and as a program: an error of one line, or something whose promises hold.
#include <algorithm>

#include "../support/memory_storage.h"
#include "fuzz.h"
#include "lab/program_file.h"
#include "lab/report.h"

namespace forebay {
namespace {

using namespace lab;

void check_one_line(const Error& error) {
  FUZZ_ASSERT(!error.message.empty());
  FUZZ_ASSERT(std::none_of(error.message.begin(), error.message.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20; }));
}

std::string some_records() {
  MemoryStorage storage;
  Records records = Records::open(storage, "r").value();
  (void)records.append("program", {{"name", "p"}, {"control", "a"}, {"budget_s", 5}});
  (void)records.append("registered", {{"cell", "a"}, {"role", "entrant"}});
  (void)records.append("cost", {{"cell", "a"}, {"device_s", 1.5}});
  (void)records.append("ended", {{"cell", "a"}, {"outcome", "killed"}, {"reason", "gap-high"}});
  (void)records.append("verdict", {{"cell", "a"}, {"gate", "gap-flat"}, {"outcome", "pass"}, {"value", 1.0}});
  return storage.get("r");
}

}  // namespace
}  // namespace forebay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forebay;
  const std::string text(reinterpret_cast<const char*>(data), size);
  MemoryStorage storage;
  storage.put("d/records.jsonl", text);
  storage.put("d/cells/a/metrics.jsonl", text);
  storage.put("p.toml", text);
  const Result<Records> records = Records::open(storage, "d/records.jsonl");
  if (!records) check_one_line(records.error());
  const Result<Report> report = make_report(storage, "d", "reward");
  FUZZ_ASSERT(report.has_value() == records.has_value());
  if (report) {
    FUZZ_ASSERT(!as_markdown(*report).empty());
    (void)as_json(*report);
  }
  const Result<Series> series = read_series(storage, "d/cells/a/metrics.jsonl");
  FUZZ_ASSERT(series.has_value());
  for (const Gate& gate : all_gates()) {
    const Verdict verdict = judge(gate, *series, &*series);
    FUZZ_ASSERT(verdict.outcome != Outcome::kUninformative || !verdict.note.empty());
  }
  for (const KillTrigger& trigger : all_triggers()) (void)check(trigger, *series, std::chrono::seconds(1));
  const Result<LabProgram> program = read_program(storage, "p.toml");
  if (!program) check_one_line(program.error());
  if (program)
    for (const Cell& cell : program->cells) (void)program->settings_of(cell);
  return 0;
}

FuzzSeeds fuzz_seeds() {
  return {{forebay::some_records(),
           "{\"step\":1,\"gap\":2.5,\"reward\":0.5,\"kl_dense\":0.1}\n{\"step\":120,\"gap\":null}\n",
           "[program]\nbudget_s = 5\ncontrol = 'a'\n[cell.a]\nset = ['x=1']\ngates = "
           "['gap-flat']\n[cell.b]\nparent = 'a'\n"},
          {"\"step\":", "\n", "{\"kind\":\"torn\"", "\"cell\":\"a\"", "[cell.b]", "parent = 'b'", "null",
           "1e308", "\"n\":"}};
}
