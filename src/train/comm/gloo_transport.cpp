// c10d's Gloo group as a transport: a frame is a message of 13 bytes and, unless it is empty, one of its
// bytes.
#include "train/comm/transport.h"

#ifdef FOREBAY_HAS_GLOO

#include <atomic>
#include <mutex>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/torch.h>

#include "train/comm/c10d_store.h"

namespace forebay::train {
namespace {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;

// Waits are ended by abort(), not by Gloo: it closes a connection for good when one of its own waits ends.
constexpr std::chrono::hours kLong{24 * 7};

Error error_of(const std::exception& exception) {
  const std::string_view text = exception.what();
  return {Code::kIo, std::string(text.substr(0, text.find('\n')))};
}

torch::Tensor bytes_at(const uint8_t* bytes, size_t n) {
  return torch::from_blob(const_cast<uint8_t*>(bytes), {static_cast<int64_t>(n)}, torch::kUInt8);
}

class GlooTransport : public Transport {
 public:
  GlooTransport(const Timeouts& timeouts, int size, c10::intrusive_ptr<c10d::ProcessGroupGloo> group)
      : timeouts_(timeouts), group_(std::move(group)), under_way_(2 * static_cast<size_t>(size)) {}

  std::string name() const override { return "gloo"; }

  Result<void> write(int to, const Frame& frame, Deadline) override {
    uint8_t header[kFrameHeaderBytes];
    put_frame_header(frame, header);
    TRY(pass(to, bytes_at(header, sizeof(header)), Way::kSend));
    if (frame.bytes.empty()) return {};
    return pass(to, bytes_at(frame.bytes.data(), frame.bytes.size()), Way::kSend);
  }

  Result<Frame> read(int from) override {
    uint8_t bytes[kFrameHeaderBytes];
    TRY(pass(from, bytes_at(bytes, sizeof(bytes)), Way::kReceive));
    auto [frame, n_bytes] = TRY(get_frame_header(bytes));
    frame.bytes.resize(n_bytes);
    if (n_bytes > 0) TRY(pass(from, bytes_at(frame.bytes.data(), n_bytes), Way::kReceive));
    return std::move(frame);
  }

  void abort() override {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    for (const WorkPointer& work : under_way_)
      if (work) work->abort();
  }

  bool has_collectives() const override { return true; }

  Result<void> allreduce(std::span<float> values) override {
    std::vector<at::Tensor> tensors = {
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat)};
    c10d::AllreduceOptions options;
    options.timeout = timeouts_.pg;
    return finish([&] { return group_->allreduce(tensors, options); });
  }

  Result<void> broadcast(std::span<uint8_t> bytes, int root) override {
    std::vector<at::Tensor> tensors = {bytes_at(bytes.data(), bytes.size())};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeouts_.pg;
    return finish([&] { return group_->broadcast(tensors, options); });
  }

 private:
  enum class Way { kSend, kReceive };

  Result<void> pass(int peer, const torch::Tensor& bytes, Way way) {
    try {
      std::vector<at::Tensor> tensors = {bytes};
      WorkPointer& slot = under_way_[2 * static_cast<size_t>(peer) + (way == Way::kSend ? 0 : 1)];
      WorkPointer work;
      {
        const std::lock_guard lock(mutex_);
        if (aborted_) return Error{Code::kIo, "the circuit is closed"};
        work = way == Way::kSend ? WorkPointer(group_->send(tensors, peer, 0))
                                 : WorkPointer(group_->recv(tensors, peer, 0));
        slot = work;
      }
      const bool done = work->wait(kLong);
      const std::lock_guard lock(mutex_);
      slot.reset();
      if (!done || aborted_) return Error{Code::kIo, "the circuit is closed"};
      return {};
    } catch (const std::exception& exception) {
      return error_of(exception);
    }
  }

  template <typename Start>
  Result<void> finish(Start&& start) {
    try {
      start()->wait();
      return {};
    } catch (const std::exception& exception) {
      return error_of(exception);
    }
  }

  const Timeouts timeouts_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::vector<WorkPointer> under_way_;  // two per peer: sending, receiving
};

}  // namespace

Result<std::unique_ptr<Transport>> make_gloo_transport(Control& control, std::string_view name) {
  try {
    const Timeouts& timeouts = control.timeouts();
    const c10::intrusive_ptr<c10d::Store> store = TRY(share_store(control, name));
    auto options = c10d::ProcessGroupGloo::Options::create(timeouts.init);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(control.address()));
    options->threads = 1;
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, control.rank(), control.size(), options);
    // Rank 0's store must live until all have found each other in it.
    TRY(control.barrier(fmt::format("{}/connected", name)));
    return std::unique_ptr<Transport>(
        std::make_unique<GlooTransport>(timeouts, control.size(), std::move(group)));
  } catch (const std::exception& exception) {
    return error_of(exception).in("Gloo");
  }
}

}  // namespace forebay::train

#else

namespace forebay::train {

Result<std::unique_ptr<Transport>> make_gloo_transport(Control&, std::string_view) {
  return Error{Code::kUnsupported, "this build has no Gloo: take the backend tcp"};
}

}  // namespace forebay::train

#endif
