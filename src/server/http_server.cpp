#include "server/http_server.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

thread_local socket_t current_socket = -1;

/// Waits for an event, at most until `deadline`.
bool wait_for(socket_t socket, short event, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one{socket, event, 0};
    const int n = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

bool is_gone(socket_t socket) {
  pollfd one{socket, POLLIN, 0};
  if (::poll(&one, 1, 0) <= 0) return false;
  if ((one.revents & (POLLERR | POLLNVAL)) != 0) return true;
  char byte;
  const ssize_t n = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/// One connection. Reads are buffered: the library asks for single bytes.
class Connection : public httplib::Stream {
 public:
  Connection(socket_t socket, const HttpLimits& limits) : socket_(socket), limits_(limits) {}

  void begin_request() { deadline_ = Clock::now() + limits_.request; }
  bool has_buffered() const { return begin_ < end_; }
  /// A request did not come to its end: what follows on this connection, if anything, is not a request.
  bool is_broken() const { return broken_; }

  bool is_readable() const override { return has_buffered() || wait_for(socket_, POLLIN, deadline_); }
  bool is_writable() const override {
    return wait_for(socket_, POLLOUT, Clock::now() + limits_.write) && !is_gone(socket_);
  }
  ssize_t read(char* to, size_t size) override {
    if (!has_buffered()) {
      const ssize_t n =
          wait_for(socket_, POLLIN, deadline_) ? ::recv(socket_, buffer_, sizeof(buffer_), 0) : -1;
      broken_ = n <= 0;
      if (broken_) return n;
      begin_ = 0;
      end_ = static_cast<size_t>(n);
    }
    const size_t n = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_ + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    if (!wait_for(socket_, POLLOUT, Clock::now() + limits_.write)) return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { name_of(::getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { name_of(::getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  template <typename GetName>
  void name_of(GetName get_name, std::string& ip, int& port) const {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (get_name(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
    char text[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
      ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
      port = ntohs(v4->sin_port);
    } else if (address.ss_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
      port = ntohs(v6->sin6_port);
    }
    ip = text;
  }

  const socket_t socket_;
  const HttpLimits& limits_;
  Clock::time_point deadline_ = Clock::now();
  char buffer_[8192];
  size_t begin_ = 0, end_ = 0;
  bool broken_ = false;
};

/// A thread for each connection that is open, kept for the next one.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (n_idle_ < tasks_.size() && threads_.size() < most_) threads_.emplace_back([this] { work(); });
    changed_.notify_one();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        ++n_idle_;
        changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
        --n_idle_;
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t n_idle_ = 0;
  bool ending_ = false;
};

}  // namespace

HttpServer::HttpServer(const HttpLimits& limits) : limits_(limits) {
  new_task_queue = [most = limits.max_connections] { return new ConnectionThreads(most); };
  set_payload_max_length(limits.max_body_bytes);
  set_tcp_nodelay(true);
  // What the headers promise; the loop below keeps it.
  set_keep_alive_timeout(limits.idle.count());
  set_keep_alive_max_count(1'000'000);
}

void HttpServer::widen_backlog() {
  ::listen(svr_sock_, 512);
}

bool HttpServer::peer_is_gone() {
  return current_socket >= 0 && is_gone(current_socket);
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  const size_t n_open = ++n_connections_;
  // tcp_nodelay of the listening socket is not inherited everywhere; events are small and should not wait.
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  current_socket = socket;
  Connection connection(socket, limits_);
  // Where threads run short, nobody keeps one for a connection that only waits.
  const bool crowded = n_open + 8 > limits_.max_connections;
  const auto next_request = [&] {
    const auto until = Clock::now() + (crowded ? std::chrono::seconds(1) : limits_.idle);
    while (!closing_ && Clock::now() < until)
      if (connection.has_buffered() ||
          wait_for(socket, POLLIN, std::min(until, Clock::now() + std::chrono::milliseconds(100))))
        return true;
    return false;
  };
  bool ok = true, closed = false;
  while (ok && !closed && next_request()) {
    connection.begin_request();
    ok = process_request(connection, closing_ || crowded, closed, nullptr) && !connection.is_broken();
  }
  current_socket = -1;
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  --n_connections_;
  return ok;
}

}  // namespace forebay
