// c10d's NCCL groups as a transport. Bytes go through the device; a frame is a message of 13 bytes and,
// unless it is empty, one of its bytes. NCCL runs what two processes have between them in one order, so each
// direction has a group of its own: a send that waits must not hold up the receive that the other side waits
// for.
#include "train/comm/transport.h"

#ifdef FOREBAY_HAS_NCCL

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/torch.h>

#include "train/comm/c10d_store.h"

namespace forebay::train {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

Error error_of(const std::exception& exception) {
  const std::string_view text = exception.what();
  return {Code::kIo, std::string(text.substr(0, text.find('\n')))};
}

class NcclTransport : public Transport {
 public:
  NcclTransport(int rank, int device, Group up, Group down, Group all)
      : rank_(rank),
        device_(torch::kCUDA, static_cast<c10::DeviceIndex>(device)),
        up_(std::move(up)),
        down_(std::move(down)),
        all_(std::move(all)) {}
  ~NcclTransport() override { abort(); }

  std::string name() const override { return "nccl"; }

  Result<void> write(int to, const Frame& frame, Deadline) override {
    return guarded([&] {
      uint8_t header[kFrameHeaderBytes];
      put_frame_header(frame, header);
      send(to, header);
      if (!frame.bytes.empty()) send(to, frame.bytes);
    });
  }

  Result<Frame> read(int from) override {
    uint8_t bytes[kFrameHeaderBytes];
    TRY(guarded([&] { recv(from, bytes); }));
    auto [frame, n_bytes] = TRY(get_frame_header(bytes));
    frame.bytes.resize(n_bytes);
    if (n_bytes > 0) TRY(guarded([&, &frame = frame] { recv(from, frame.bytes); }));
    return std::move(frame);
  }

  void abort() override {
    for (const Group& group : {up_, down_, all_}) {
      try {
        group->abort();
      } catch (const std::exception&) {
        // It is being given up; the error that led here is what is reported.
      }
    }
  }

  bool has_collectives() const override { return true; }

  Result<void> allreduce(std::span<float> values) override {
    return guarded([&] {
      const torch::Tensor host =
          torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat);
      std::vector<at::Tensor> tensors = {host.to(device_)};
      all_->allreduce(tensors)->wait();
      host.copy_(tensors[0]);
    });
  }

  Result<void> broadcast(std::span<uint8_t> bytes, int root) override {
    return guarded([&] {
      const torch::Tensor host = host_bytes(bytes);
      std::vector<at::Tensor> tensors = {host.to(device_)};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      all_->broadcast(tensors, options)->wait();
      host.copy_(tensors[0]);
    });
  }

 private:
  static torch::Tensor host_bytes(std::span<const uint8_t> bytes) {
    return torch::from_blob(const_cast<uint8_t*>(bytes.data()), {static_cast<int64_t>(bytes.size())},
                            torch::kUInt8);
  }
  Group& towards(int from, int to) { return from < to ? up_ : down_; }

  void send(int to, std::span<const uint8_t> bytes) {
    std::vector<at::Tensor> tensors = {host_bytes(bytes).to(device_)};
    towards(rank_, to)->send(tensors, to, 0)->wait();
    c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
  }
  void recv(int from, std::span<uint8_t> bytes) {
    std::vector<at::Tensor> tensors = {torch::empty({static_cast<int64_t>(bytes.size())},
                                                    torch::TensorOptions(device_).dtype(torch::kUInt8))};
    towards(from, rank_)->recv(tensors, from, 0)->wait();
    host_bytes(bytes).copy_(tensors[0]);
  }

  /// On a stream of this thread's own: the layers' stream does not wait for messages.
  template <typename Work>
  Result<void> guarded(Work&& work) {
    try {
      const c10::cuda::CUDAGuard on_device(device_);
      thread_local const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, device_.index());
      const c10::cuda::CUDAStreamGuard on_stream(stream);
      work();
      return {};
    } catch (const std::exception& exception) {
      return error_of(exception);
    }
  }

  const int rank_;
  const torch::Device device_;
  Group up_, down_, all_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(Control& control, std::string_view name, int device) {
  try {
    const Timeouts& timeouts = control.timeouts();
    const c10::intrusive_ptr<c10d::Store> store = TRY(share_store(control, name));
    const c10::cuda::CUDAGuard on_device(static_cast<c10::DeviceIndex>(device));
    const auto group = [&](const char* part) {
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = timeouts.step;
      return c10::make_intrusive<c10d::ProcessGroupNCCL>(
          c10::make_intrusive<c10d::PrefixStore>(std::string(part), store), control.rank(), control.size(),
          options);
    };
    Group up = group("up"), down = group("down"), all = group("all");
    return std::unique_ptr<Transport>(std::make_unique<NcclTransport>(control.rank(), device, std::move(up),
                                                                      std::move(down), std::move(all)));
  } catch (const std::exception& exception) {
    return error_of(exception).in("NCCL");
  }
}

}  // namespace forebay::train

#else

namespace forebay::train {

Result<std::unique_ptr<Transport>> make_nccl_transport(Control&, std::string_view, int) {
  return Error{Code::kUnsupported, "this build has no NCCL: take the backend tcp or gloo"};
}

}  // namespace forebay::train

#endif
