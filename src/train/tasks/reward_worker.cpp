#include "train/tasks/reward_worker.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forebay::train {
namespace {

// A request: four lengths or flags, then the texts of the item and the answer. A reply: the score's fields.
using Header = std::array<uint64_t, 4>;  // bytes of prompt, key and answer; answerable
using Reply = std::array<double, 3>;

bool send_all(int socket, const void* data, size_t n) {
  const char* at = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t sent = ::send(socket, at, n, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    n -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t n) {
  char* at = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t got = ::recv(socket, at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= static_cast<size_t>(got);
  }
  return true;
}

[[noreturn]] void serve(const Task& task, int socket) {
  Header header;
  while (receive_all(socket, &header, sizeof(header))) {
    Item item;
    std::string answer;
    item.prompt.resize(header[0]);
    item.key.resize(header[1]);
    answer.resize(header[2]);
    item.answerable = header[3] != 0;
    if (!receive_all(socket, item.prompt.data(), header[0]) ||
        !receive_all(socket, item.key.data(), header[1]) || !receive_all(socket, answer.data(), header[2]))
      break;
    const Score score = task.score(item, answer);
    const Reply reply = {score.reward, score.format, score.declined ? 1.0 : 0.0};
    if (!send_all(socket, &reply, sizeof(reply))) break;
  }
  ::_exit(0);
}

}  // namespace

Result<RewardWorker> RewardWorker::start(const Task& task, std::chrono::milliseconds patience) {
  RewardWorker worker(task, patience);
  TRY(worker.launch());
  return worker;
}

RewardWorker::RewardWorker(RewardWorker&& other) noexcept
    : task_(other.task_),
      patience_(other.patience_),
      process_(std::exchange(other.process_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      n_deaths_(other.n_deaths_) {}

RewardWorker::~RewardWorker() {
  stop();
}

Result<void> RewardWorker::launch() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{Code::kIo, fmt::format("reward worker: socketpair: {}", std::strerror(errno))};
  const int process = ::fork();
  if (process < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    return Error{Code::kIo, fmt::format("reward worker: fork: {}", std::strerror(reason))};
  }
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGINT, SIG_IGN);  // the trainer decides when to stop
    ::close(ends[0]);
    serve(*task_, ends[1]);
  }
  ::close(ends[1]);
  process_ = process;
  socket_ = ends[0];
  return {};
}

void RewardWorker::stop() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, -1), nullptr, 0);
  }
}

std::optional<Score> RewardWorker::ask(const Answer& answer) {
  const Item& item = *answer.item;
  const Header header = {item.prompt.size(), item.key.size(), answer.text.size(), item.answerable ? 1u : 0u};
  if (!send_all(socket_, &header, sizeof(header)) ||
      !send_all(socket_, item.prompt.data(), item.prompt.size()) ||
      !send_all(socket_, item.key.data(), item.key.size()) ||
      !send_all(socket_, answer.text.data(), answer.text.size()))
    return std::nullopt;
  pollfd ready{socket_, POLLIN, 0};
  int n = 0;
  do {
    n = ::poll(&ready, 1, static_cast<int>(patience_.count()));
  } while (n < 0 && errno == EINTR);
  Reply reply;
  if (n <= 0 || !receive_all(socket_, &reply, sizeof(reply))) return std::nullopt;
  return Score{reply[0], reply[1], reply[2] != 0};
}

Result<std::vector<std::optional<Score>>> RewardWorker::score(std::span<const Answer> answers) {
  std::vector<std::optional<Score>> scores;
  for (const Answer& answer : answers) {
    scores.push_back(ask(answer));
    if (scores.back()) continue;
    ++n_deaths_;
    stop();
    TRY(launch());
  }
  return scores;
}

}  // namespace forebay::train
