/// Frames to and from every other process of a circuit: queues, a thread for each direction that is used, the
/// emulated link, meters, and errors that name the process that failed first.
#pragma once

#include <memory>
#include <vector>

#include "forebay/result.h"

#include "train/comm/comm_count.h"
#include "train/comm/control.h"
#include "train/comm/link_model.h"
#include "train/comm/transport.h"

namespace forebay::train {

/// Confined, but for end(). `control` must outlive it. Errors are kIo unless said, and explained().
class Mailboxes {
 public:
  /// `transport` may be empty: then there are no peers.
  Mailboxes(Control& control, std::unique_ptr<Transport> transport, const LinkOptions& link);
  ~Mailboxes();
  Mailboxes(const Mailboxes&) = delete;

  /// Sends when it is its turn. Errors: also of frames before it; kUnsupported for one of more than 4 GB.
  Result<void> queue(int to, Frame frame);
  /// The next one of `from` in this lane, which may have come already; waits up to timeouts.step. Errors:
  /// kInternal for another tag than `tag`.
  Result<Frame> next(int from, Lane lane, uint64_t tag);
  /// Waits until everything is sent, up to timeouts.step.
  Result<void> flush();
  /// Everything that waits returns an error, now and from now on. Thread-safe.
  void end();

  /// What the caller is told: the failure of the run when there is one, else this one, which then is it.
  Error explained(int peer, const Error& error);

  /// Null without one.
  Transport* transport() const { return transport_.get(); }
  const LinkOptions& link() const { return link_; }
  LinkCount link_count(int to) const;

  /// What this process sent and got; who moves bytes past the queues adds them.
  CommCount sent, received;

 private:
  struct Peer;

  void send_on(int to);
  void recv_on(int from);
  Result<void> check_peer(int peer) const;
  Peer& at(int peer) const { return *peers_[static_cast<size_t>(peer)]; }

  Control& control_;
  const std::unique_ptr<Transport> transport_;
  const LinkOptions link_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  int callback_ = -1;
};

}  // namespace forebay::train
