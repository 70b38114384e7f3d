#include "core/faulty_storage.h"

#include <fmt/format.h>

namespace forebay {

/// Shared by the storage and the files it opened, which may outlive it.
struct FaultyStorage::Counter {
  explicit Counter(FaultPlan p) : plan(std::move(p)), fail_at(plan.fail_at) {}

  /// Counts one operation; an Error when it is one that must fail.
  Result<void> step(StorageOp op, const Path& path) {
    if (op != plan.op || fail_at <= 0) return {};
    const int n = ++n_ops;
    if (n < fail_at || (n > fail_at && !plan.keep_failing)) return {};
    ++n_faults;
    if (plan.hang) {
      plan.hang();
      return {};
    }
    return Error{plan.code, fmt::format("{}: {}", path.string(), plan.reason)};
  }

  const FaultPlan plan;
  std::atomic<int> fail_at;
  std::atomic<int> n_ops = 0;
  std::atomic<int> n_faults = 0;
};

namespace {

class FaultyReadableFile : public ReadableFile {
 public:
  FaultyReadableFile(std::unique_ptr<ReadableFile> below, std::shared_ptr<FaultyStorage::Counter> counter)
      : below_(std::move(below)), counter_(std::move(counter)) {}

  const Path& path() const override { return below_->path(); }
  uint64_t size() const override { return below_->size(); }
  Result<void> read_at(uint64_t offset, std::span<std::byte> out) override {
    TRY(counter_->step(StorageOp::kRead, path()));
    return below_->read_at(offset, out);
  }
  Result<std::span<const std::byte>> read_around(uint64_t offset, uint64_t n,
                                                 std::span<std::byte> buffer) override {
    TRY(counter_->step(StorageOp::kRead, path()));
    return below_->read_around(offset, n, buffer);
  }
  bool direct() const override { return below_->direct(); }
  Result<std::unique_ptr<Mapping>> map() override {
    TRY(counter_->step(StorageOp::kMap, path()));
    return below_->map();
  }

 private:
  std::unique_ptr<ReadableFile> below_;
  std::shared_ptr<FaultyStorage::Counter> counter_;
};

class FaultyWritableFile : public WritableFile {
 public:
  FaultyWritableFile(std::unique_ptr<WritableFile> below, std::shared_ptr<FaultyStorage::Counter> counter)
      : below_(std::move(below)), counter_(std::move(counter)) {}

  const Path& path() const override { return below_->path(); }
  uint64_t position() const override { return below_->position(); }
  Result<void> append(std::span<const std::byte> bytes) override {
    TRY(counter_->step(StorageOp::kWrite, path()));
    return below_->append(bytes);
  }
  Result<void> write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    TRY(counter_->step(StorageOp::kWrite, path()));
    return below_->write_at(offset, bytes);
  }
  Result<void> write_pages(uint64_t offset, std::span<const std::byte> pages) override {
    TRY(counter_->step(StorageOp::kWrite, path()));
    return below_->write_pages(offset, pages);
  }
  bool direct() const override { return below_->direct(); }
  Result<void> sync() override {
    TRY(counter_->step(StorageOp::kSync, path()));
    return below_->sync();
  }
  Result<void> close() override {
    TRY(counter_->step(StorageOp::kClose, path()));
    return below_->close();
  }

 private:
  std::unique_ptr<WritableFile> below_;
  std::shared_ptr<FaultyStorage::Counter> counter_;
};

}  // namespace

FaultyStorage::FaultyStorage(Storage& below, FaultPlan plan)
    : below_(below), counter_(std::make_shared<Counter>(std::move(plan))) {}

void FaultyStorage::arm(int fail_at) {
  counter_->fail_at = 0;
  counter_->n_ops = counter_->n_faults = 0;
  counter_->fail_at = fail_at;
}

int FaultyStorage::n_faults() const {
  return counter_->n_faults;
}

Result<std::unique_ptr<ReadableFile>> FaultyStorage::open(const Path& path) {
  TRY(counter_->step(StorageOp::kOpen, path));
  std::unique_ptr<ReadableFile> file = TRY(below_.open(path));
  return std::unique_ptr<ReadableFile>(std::make_unique<FaultyReadableFile>(std::move(file), counter_));
}

Result<std::unique_ptr<ReadableFile>> FaultyStorage::open_direct(const Path& path) {
  TRY(counter_->step(StorageOp::kOpen, path));
  std::unique_ptr<ReadableFile> file = TRY(below_.open_direct(path));
  return std::unique_ptr<ReadableFile>(std::make_unique<FaultyReadableFile>(std::move(file), counter_));
}

Result<std::unique_ptr<WritableFile>> FaultyStorage::create(const Path& path) {
  TRY(counter_->step(StorageOp::kCreate, path));
  std::unique_ptr<WritableFile> file = TRY(below_.create(path));
  return std::unique_ptr<WritableFile>(std::make_unique<FaultyWritableFile>(std::move(file), counter_));
}

Result<std::unique_ptr<WritableFile>> FaultyStorage::open_to_append(const Path& path) {
  TRY(counter_->step(StorageOp::kCreate, path));
  std::unique_ptr<WritableFile> file = TRY(below_.open_to_append(path));
  return std::unique_ptr<WritableFile>(std::make_unique<FaultyWritableFile>(std::move(file), counter_));
}

Result<std::unique_ptr<WritableFile>> FaultyStorage::create_direct(const Path& path, uint64_t bytes) {
  TRY(counter_->step(StorageOp::kCreate, path));
  std::unique_ptr<WritableFile> file = TRY(below_.create_direct(path, bytes));
  return std::unique_ptr<WritableFile>(std::make_unique<FaultyWritableFile>(std::move(file), counter_));
}

Result<void> FaultyStorage::rename(const Path& from, const Path& to) {
  TRY(counter_->step(StorageOp::kRename, from));
  return below_.rename(from, to);
}

Result<void> FaultyStorage::remove(const Path& path) {
  TRY(counter_->step(StorageOp::kRemove, path));
  return below_.remove(path);
}

bool FaultyStorage::exists(const Path& path) {
  return below_.exists(path);
}

}  // namespace forebay
