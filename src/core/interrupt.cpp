// request_stop runs callbacks and takes locks, which a signal handler must not. So the handler writes a
// byte to an eventfd, and a thread that reads it requests the stop.
#include "core/interrupt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/ensure.h"

namespace forebay {
namespace {

// Handlers take no argument of ours: the one place where state must be global.
std::atomic<int> n_signals = 0;
std::atomic<int> event_fd = -1;
struct sigaction old_interrupt, old_terminate;

void wake_watcher() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(event_fd.load(), &one, sizeof(one));
}

void on_signal(int) {
  const int saved_errno = errno;
  if (n_signals.fetch_add(1) > 0) ::_exit(130);
  wake_watcher();
  errno = saved_errno;
}

}  // namespace

Interrupt::Interrupt() {
  ENSURE(event_fd.load() < 0, "two Interrupts at once");
  event_fd = ::eventfd(0, EFD_CLOEXEC);
  ENSURE(event_fd.load() >= 0, "no eventfd");
  n_signals = 0;
  watcher_ = std::jthread([this] {
    uint64_t count;
    while (::read(event_fd.load(), &count, sizeof(count)) < 0 && errno == EINTR) {
    }
    if (n_signals.load() > 0) source_.request_stop();
  });
  struct sigaction action = {};
  action.sa_handler = on_signal;
  // Without SA_RESTART a write to a slow pipe would fail half way; who waits watches the token instead.
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &old_interrupt);
  ::sigaction(SIGTERM, &action, &old_terminate);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGTERM, &old_terminate, nullptr);
  wake_watcher();
  watcher_.join();
  ::close(event_fd.exchange(-1));
}

}  // namespace forebay
