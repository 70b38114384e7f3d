// One thing fails, each in its turn: every reservation of memory and every operation on files, from opening a
// model to a session saved and loaded. What comes is an error, nothing is lost, and the next request is
// right.
//
// Files are in memory: hundreds of runs would otherwise wait for the disk to sync.
#include <cstring>

#include <gtest/gtest.h>

#include "forebay/engine.h"

#include "core/faulty_budget.h"
#include "core/faulty_storage.h"
#include "session/session_file.h"
#include "support/memory_storage.h"
#include "support/result_matchers.h"
#include "test_models.h"

namespace forebay {
namespace {

using Logits = std::vector<float>;

constexpr const char* kModel = "model.gguf";
constexpr const char* kSession = "one.session";

using testing::some_ids;

/// Which operation fails, for the n-th time it is asked for; none: a reservation.
struct Fault {
  std::optional<StorageOp> op;
  int n = 0;
};

/// A storage and a budget of which one fails once.
struct Machine {
  Machine(Storage& below, Fault fault)
      : n_refused(std::make_shared<int>(0)),
        budget(std::make_unique<FaultyBudget>(fault.op ? 0 : fault.n, n_refused)),
        storage(std::make_unique<FaultyStorage>(
            below, FaultPlan{.op = fault.op.value_or(StorageOp::kRead), .fail_at = fault.op ? fault.n : 0})),
        files(storage.get()) {}

  int n_faults() const { return *n_refused + n_left_files; }
  /// Before `files` goes with whoever owns it.
  void note_faults() { n_left_files = files->n_faults(); }

  std::shared_ptr<int> n_refused;
  std::unique_ptr<FaultyBudget> budget;
  std::unique_ptr<FaultyStorage> storage;
  FaultyStorage* files;
  int n_left_files = 0;
};

/// A scenario on a machine of this kind: logits, or the error it ended with. Where it could ask again after
/// an error, it did, and `again` has the answer.
struct Outcome {
  Result<Logits> first;
  std::optional<Result<Logits>> again;
};

using Scenario = Outcome (*)(Machine& machine);

/// Once `ask` has failed, nothing else will: it must do what it did not do.
template <typename Ask>
Outcome ask_twice(Ask ask) {
  Result<Logits> first = ask();
  if (first) return {std::move(first), std::nullopt};
  return {std::move(first), ask()};
}

/// The engine with mapped experts: sessions, snapshots, files.
Outcome run_engine(Machine& machine) {
  EngineOptions options;
  options.model = kModel;
  options.context = 256;
  options.threads = 1;
  options.chunk = 64;
  options.experts = ExpertPlacement::kMapped;
  Result<Engine> engine = Engine::open(options, std::move(machine.storage), std::move(machine.budget));
  if (!engine) {
    // What failed owns nothing any more; that it opens next time is for a new machine to show.
    return {std::move(engine).error(), std::nullopt};
  }
  const uint64_t when_open = engine->reserved_bytes();
  const std::vector<int32_t> ids = some_ids(90);
  const Outcome outcome = ask_twice([&]() -> Result<Logits> {
    {
      Session session = TRY(engine->new_session());
      TRY(session.sync(std::span(ids).first(70)));
      TRY(session.sync(std::span(ids).first(80)));
      TRY(session.sync(std::span(ids).first(75)));  // back to a snapshot
      TRY(session.append(ids[75]));
      TRY(session.save(kSession));
    }
    Session session = TRY(engine->new_session());
    TRY(session.load(kSession));
    for (const int32_t id : std::span(ids).subspan(76)) TRY(session.append(id));
    return Logits(session.logits().begin(), session.logits().end());
  });
  // Logits of more rows than before stay with the model; sessions leave nothing.
  EXPECT_LE(engine->reserved_bytes(), when_open + 2 * 512 * sizeof(float));
  machine.note_faults();
  return outcome;
}

/// The model with streamed experts in a small arena: slots come and go, windows are cut back, a state is
/// written and read.
Outcome run_streamed(Machine& machine) {
  ThreadPool pool(1);
  KernelContext kernels(pool, best_isa());
  Storage& storage = *machine.storage;
  const auto open = [&]() -> Result<GgufFile> { return GgufFile::open(storage, kModel); };
  std::optional<Error> refused;
  Result<GgufFile> file = open();
  if (!file) {
    refused = file.error();
    file = open();
  }
  if (!file) return {std::move(file).error(), std::nullopt};
  ModelOptions options;
  options.experts = ExpertPlacement::kStreamed;
  options.cache.budget_bytes = 600 << 10;
  options.cache.shelf_bytes = 100 << 10;
  // Of files in memory reads end as they are submitted where the kernel has a queue: n always means the same
  // read. threads_test.cpp has faults on other threads.
  options.cache.engine = ReadEngine::kAuto;
  options.max_window = 12;
  const auto load = [&] { return Model::load(storage, *file, nullptr, options, kernels, *machine.budget); };
  Result<Model> model = load();
  if (!model) {
    refused = model.error();
    model = load();
  }
  if (!model) return {std::move(model).error(), std::nullopt};
  const std::vector<int32_t> ids = some_ids(24);
  const auto ask = [&]() -> Result<Logits> {
    SequenceState state = TRY(model->new_state(128));
    Logits logits;
    const auto feed = [&](std::span<const int32_t> tokens) -> Result<void> {
      const Span span{&state, tokens, LogitRows::kLast};
      const ForwardOutput out = TRY(model->forward({&span, 1}));
      logits.assign(out.logits.row(0), out.logits.row(0) + out.logits.cols);
      return {};
    };
    TRY(feed(std::span(ids).first(12)));
    TRY(feed(std::span(ids).subspan(12, 5)));
    TRY(model->arm_undo(state));
    TRY(feed(std::span(ids).subspan(17, 4)));
    TRY(model->keep(state, 2));
    const std::vector<int32_t> tokens(ids.begin(), ids.begin() + 19);
    TRY(write_session(storage, kSession, {&state, nullptr, tokens, logits}, {.n_threads = 1}));
    SessionReader reader = TRY(SessionReader::open(storage, kSession));
    TRY(reader.load(state, {}, logits, 1));
    for (const int32_t id : std::span(ids).subspan(19)) TRY(feed({&id, 1}));
    return logits;
  };
  Outcome outcome = ask_twice(ask);
  machine.note_faults();
  if (refused) return {*refused, std::move(outcome.first)};
  return outcome;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

class Faults : public ::testing::TestWithParam<std::string> {
 protected:
  Faults() {
    const auto disk = make_posix_storage();
    const auto file = disk->open(testing::converted_vectors(GetParam(), "q8_0")).value();
    std::string bytes(file->size(), 0);
    EXPECT_OK(file->read_at(0, std::as_writable_bytes(std::span(bytes))));
    files_.put(kModel, std::move(bytes));
  }

  /// Raises n until a run meets no fault. Instrumented it leaves out some of the many, for time.
  void sweep(Scenario scenario, std::optional<StorageOp> op, const char* what) {
    const auto run = [&](Fault fault, int& n_faults) {
      (void)files_.remove(kSession);
      Machine machine(files_, fault);
      Outcome outcome = scenario(machine);
      n_faults = machine.n_faults();
      EXPECT_FALSE(files_.exists(std::string(kSession) + ".partial"));
      return outcome;
    };
    int n_faults = 0;
    const Outcome whole = run({op, 0}, n_faults);
    ASSERT_OK(whole.first);
    int n_errors = 0;
    for (int n = 1;; n += kInstrumented ? 1 + n / 16 : 1) {
      const Outcome outcome = run({op, n}, n_faults);
      const std::string where = std::string(what) + " " + std::to_string(n);
      if (outcome.first) {
        EXPECT_EQ(*outcome.first, *whole.first) << where;
      } else {
        ++n_errors;
        EXPECT_NE(outcome.first.error().message.find("injected fault"), std::string::npos)
            << where << ": " << outcome.first.error().message;
      }
      if (outcome.again) {
        ASSERT_OK(*outcome.again) << where;
        EXPECT_EQ(**outcome.again, *whole.first) << where << ": the next request";
      }
      if (outcome.first && n_faults == 0) break;
      ASSERT_LT(n, 100000) << where;
    }
    EXPECT_GT(n_errors, 0) << what;
  }

  MemoryStorage files_;
};

TEST_P(Faults, OfReservations) {
  sweep(run_engine, std::nullopt, "reservation");
  if (GetParam() != "qwen3") sweep(run_streamed, std::nullopt, "reservation of a streamed model");
}

TEST_P(Faults, OfFiles) {
  for (const StorageOp op : {StorageOp::kOpen, StorageOp::kRead, StorageOp::kMap, StorageOp::kCreate,
                             StorageOp::kWrite, StorageOp::kSync, StorageOp::kClose, StorageOp::kRename}) {
    const std::string what = "operation of kind " + std::to_string(static_cast<int>(op));
    sweep(run_engine, op, what.c_str());
    if (GetParam() != "qwen3") sweep(run_streamed, op, (what + ", streamed").c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Faults, ::testing::Values("qwen3", "qwen3next", "qwen4exp"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace forebay
