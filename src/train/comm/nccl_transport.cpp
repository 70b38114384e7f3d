// c10d's NCCL groups as a transport. The beginnings of frames go over TCP, their bytes through the devices:
// an operation that NCCL has begun occupies the device, and its watchdog ends a process in which one waits
// for too long, so nothing is begun before the other side is about to do the same.
//
// Every direction between two processes has a group of its own, of those two. NCCL runs what a group has in
// one order, and a send that waits must not hold up the receive that the other side waits for; nor may two
// threads use one group, and each direction has a thread (comm.cpp).
#include "train/comm/transport.h"

#ifdef FOREBAY_HAS_NCCL

#include <algorithm>
#include <array>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/torch.h>

#include "train/comm/c10d_store.h"

namespace forebay::train {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

/// libtorch warns that a send or receive makes a communicator of two processes. Here that is what a group is
/// for, so this one warning is dropped; the others go where they went.
class ExpectedPairs : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("unbatched P2P op") == std::string::npos) others_->process(warning);
  }

 private:
  c10::WarningHandler* const others_ = c10::WarningUtils::get_warning_handler();  // of this thread
};

Error error_of(const std::exception& exception) {
  const std::string_view text = exception.what();
  return {Code::kIo, std::string(text.substr(0, text.find('\n')))};
}

/// With one other process: to it, and from it.
struct PeerGroups {
  Group out, in;
};

class NcclTransport : public Transport {
 public:
  NcclTransport(int device, std::unique_ptr<Transport> beginnings, std::vector<PeerGroups> peers, Group all)
      : device_(torch::kCUDA, static_cast<c10::DeviceIndex>(device)),
        beginnings_(std::move(beginnings)),
        peers_(std::move(peers)),
        all_(std::move(all)) {}
  ~NcclTransport() override { abort(); }

  std::string name() const override { return "nccl"; }

  Result<void> write(int to, const Frame& frame, Deadline deadline) override {
    std::array<uint8_t, kFrameHeaderBytes> header;
    put_frame_header(frame, header);
    TRY(beginnings_->write(to, {.bytes = Bytes(header.begin(), header.end())}, deadline));
    if (frame.bytes.empty()) return {};
    return guarded([&] {
      std::vector<at::Tensor> tensors = {host_bytes(frame.bytes).to(device_)};
      peers_[static_cast<size_t>(to)].out->send(tensors, 1, 0)->wait();
      // The bytes must live until they are gone.
      c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    });
  }

  Result<Frame> read(int from) override {
    const Frame beginning = TRY(beginnings_->read(from));
    std::array<uint8_t, kFrameHeaderBytes> header;
    if (beginning.bytes.size() != header.size())
      return Error{Code::kCorrupt, fmt::format("a frame that begins with {} bytes, wanted {}",
                                               beginning.bytes.size(), header.size())};
    std::copy(beginning.bytes.begin(), beginning.bytes.end(), header.begin());
    auto [frame, n_bytes] = TRY(get_frame_header(header));
    frame.bytes.resize(n_bytes);
    if (n_bytes > 0)
      TRY(guarded([&, &frame = frame, n_bytes = n_bytes] {
        std::vector<at::Tensor> tensors = {torch::empty({static_cast<int64_t>(n_bytes)},
                                                        torch::TensorOptions(device_).dtype(torch::kUInt8))};
        peers_[static_cast<size_t>(from)].in->recv(tensors, 0, 0)->wait();
        host_bytes(frame.bytes).copy_(tensors[0]);
      }));
    return std::move(frame);
  }

  void abort() override {
    beginnings_->abort();
    for (const PeerGroups& peer : peers_) {
      give_up(peer.out);
      give_up(peer.in);
    }
    give_up(all_);
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
  static void give_up(const Group& group) {
    if (!group) return;
    try {
      group->abort();
    } catch (const std::exception&) {
      // The error that led here is what is reported.
    }
  }

  /// On a stream of this thread's own: the layers' stream does not wait for messages.
  template <typename Work>
  Result<void> guarded(Work&& work) {
    try {
      const c10::cuda::CUDAGuard on_device(device_);
      thread_local const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, device_.index());
      const c10::cuda::CUDAStreamGuard on_stream(stream);
      ExpectedPairs expected;
      const c10::WarningUtils::WarningHandlerGuard handles_warnings(&expected);
      work();
      return {};
    } catch (const std::exception& exception) {
      return error_of(exception);
    }
  }

  const torch::Device device_;
  const std::unique_ptr<Transport> beginnings_;
  const std::vector<PeerGroups> peers_;  // by rank; none with itself
  const Group all_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(Control& control, std::string_view name, int device) {
  try {
    const c10::intrusive_ptr<c10d::Store> store = TRY(share_store(control, name));
    // Groups meet in it at their first use, when both sides are there: who does not come is gone.
    store->setTimeout(control.timeouts().pg);
    std::unique_ptr<Transport> beginnings =
        TRY(make_tcp_transport(control, fmt::format("{}/beginnings", name)));
    const c10::cuda::CUDAGuard on_device(static_cast<c10::DeviceIndex>(device));
    const auto group = [&](const std::string& part, int rank, int size) {
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = control.timeouts().step;
      return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>(part, store),
                                                         rank, size, options);
    };
    const int self = control.rank();
    std::vector<PeerGroups> peers(static_cast<size_t>(control.size()));
    for (int peer = 0; peer < control.size(); ++peer) {
      if (peer == self) continue;
      // Who sends is 0 of 2.
      peers[static_cast<size_t>(peer)] = {group(fmt::format("{}>{}", self, peer), 0, 2),
                                          group(fmt::format("{}>{}", peer, self), 1, 2)};
    }
    Group all = group("all", self, control.size());
    return std::unique_ptr<Transport>(
        std::make_unique<NcclTransport>(device, std::move(beginnings), std::move(peers), std::move(all)));
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
