// Every documented flag of `forebay serve` changes something that can be seen: over HTTP, in what the program
// prints, or in that it refuses to start. A flag without a row here fails.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "core/free_port.h"
#include "program.h"
#include "scripted_model.h"
#include "support/temporary_directory.h"

namespace forebay::cli {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;
using std::chrono::milliseconds;

const std::string kPebble = FOREBAY_SOURCE_DIR "/models/pebble.gguf";

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Socket {
  Socket() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {}
  ~Socket() { ::close(fd); }
  Socket(const Socket&) = delete;

  bool connect(int port, const char* address = "127.0.0.1") const {
    sockaddr_in to = address_of(port, address);
    return ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  void send(const std::string& text) const {
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// Bytes until the other side closes, or nothing comes for `patience`.
  std::string receive(milliseconds patience) const {
    timeval most{patience.count() / 1000, static_cast<suseconds_t>(patience.count() % 1000 * 1000)};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    std::string all;
    char bytes[65536];
    ssize_t n;
    while ((n = ::recv(fd, bytes, sizeof(bytes), 0)) > 0) all.append(bytes, static_cast<size_t>(n));
    return all + (n == 0 ? " closed" : " open");
  }
  static sockaddr_in address_of(int port, const char* address) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, address, &a.sin_addr);
    return a;
  }
  const int fd;
};

/// The program as a server, on the port that it was told.
class Served {
 public:
  explicit Served(const Arguments& arguments)
      : port(free_port().value()),
        program_(Arguments{"serve", "--port", std::to_string(port)} + arguments, 400) {
    // Until it answers, or says why it does not.
    for (int i = 0; i < 500 && !answers(); ++i)
      if (program_.sees("forebay: ", milliseconds(10))) break;
  }
  bool answers() const { return Socket().connect(port) || Socket().connect(port, "127.0.0.2"); }
  httplib::Client client() const {
    httplib::Client c("127.0.0.1", port);
    c.set_read_timeout(60);
    return c;
  }
  Json get(const std::string& path) const {
    const auto got = client().Get(path);
    return got ? Json::parse(got->body, nullptr, false) : Json();
  }
  Json post(const std::string& path, const Json& body) const {
    const auto got = client().Post(path, body.dump(), "application/json");
    return got ? Json::parse(got->body, nullptr, false) : Json();
  }
  /// Ctrl-C: what was printed, without numbers, and the exit code.
  std::string end() {
    program_.signal(SIGINT);
    const int code = program_.finish();
    std::string text = program_.seen() + "exit code " + std::to_string(code);
    std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    return text;
  }
  /// With --stats json.
  Json stats() {
    program_.signal(SIGINT);
    program_.finish();
    const std::string& seen = program_.seen();
    const size_t at = seen.find("{\"answers\"");
    return at == std::string::npos ? Json() : Json::parse(seen.substr(at, seen.find('\n', at) - at));
  }
  void signal(int number) const { program_.signal(number); }

  const int port;

 private:
  TerminalProgram program_;
};

/// Something to look at in a server that runs.
using Look = std::function<std::string(Served&)>;

Look status(const std::string& pointer) {
  return [pointer](Served& s) {
    const Json status = s.get("/v1/status");
    return status.is_object() ? status.value(Json::json_pointer(pointer), Json()).dump() : "no status";
  };
}
Json completion(const std::string& prompt, int n_tokens) {
  return {{"prompt", prompt}, {"temperature", 0}, {"max_tokens", n_tokens}};
}
/// The likeliest tokens and their log-probabilities.
std::string likely(Served& s) {
  Json body = completion("The quick brown fox jumps over", 6);
  body["logprobs"] = 3;
  return s.post("/v1/completions", body)["choices"].dump();
}
/// What became of experts in two prompts and their answers.
Json experts(Served& s) {
  for (const char* text :
       {"rivers are wide, winters are cold, and trains take an hour. ", "7 + 8 = 15, 3 * 4 = 12, "})
    s.post("/v1/completions", completion(std::string(text) + text + text, 20));
  return s.stats()["experts"];
}
Look expert_field(const std::string& field) {
  return [field](Served& s) { return experts(s)[field].dump(); };
}
std::string printed(Served& s) {
  return s.end();
}
Look code_of(const std::string& path) {
  return [path](Served& s) {
    const auto got = s.client().Get(path);
    return got ? std::to_string(got->status) : "nothing";
  };
}

struct Row {
  Arguments base, more;
  Look look;
  std::string without = {};  // what is seen at the base, where that is known
};

/// Rows whose looks wait.
std::map<std::string, Row> waiting_rows() {
  const auto sends = [](const std::string& text) {
    return [text](Served& s) {
      const Socket socket;
      EXPECT_TRUE(socket.connect(s.port));
      socket.send(text);
      return socket.receive(milliseconds(1800));
    };
  };
  const auto takes_late = [](Served& s) {
    const Socket socket;
    const int small = 4096;
    ::setsockopt(socket.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    EXPECT_TRUE(socket.connect(s.port));
    Json ids = Json::array();
    const Json piece = s.post("/tokenize", {{"content", "                                "}});
    for (int i = 0; i < 700000; ++i) ids.push_back(piece["tokens"][0]);
    const std::string body = Json{{"tokens", ids}}.dump();
    socket.send("POST /detokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    char first;
    EXPECT_EQ(::recv(socket.fd, &first, 1, 0), 1);
    std::this_thread::sleep_for(milliseconds(2500));
    return std::to_string(socket.receive(milliseconds(2000)).size() / 1000000);
  };
  const auto slow_pass = [](Served& s) {
    std::string text;
    for (int i = 0; i < 120; ++i) text += "a long way to go ";
    return s.post("/v1/completions", completion(text, 1)).contains("error") ? std::string("stuck")
                                                                            : std::string("answered");
  };
  const Arguments slow = {"--reference-kernels", "--chunk", "1024", "-t", "1"};
  return {
      {"--idle-timeout", {{}, {"--idle-timeout", "1"}, sends("")}},
      {"--request-timeout", {{}, {"--request-timeout", "1"}, sends("GET /health HTTP/1.1\r\nHo")}},
      {"--write-timeout", {{}, {"--write-timeout", "1"}, takes_late}},
      {"--stall-timeout", {slow, {"--stall-timeout", "1"}, slow_pass}},
  };
}

std::map<std::string, Row> quick_rows(const TemporaryDirectory& directory) {
  const std::string curve = (directory / "curve.json").string();
  std::ofstream(curve) << R"({"format": "forebay-route-curve-1", "model": "0000000000000000", "points": [
    {"route_bias": 1, "mean_kld": 0, "ci_high": 0, "p99_kld": 0, "misses_per_token": 0, "bytes_per_token": 0}]})";
  const Arguments streamed = {"-c",     "512",      "--parallel", "1",       "--experts",
                              "stream", "--budget", "24M",        "--stats", "json"};
  const Arguments small_chunks = {"--chunk", "8"};
  const auto listens_elsewhere = [](Served& s) {
    return std::to_string(Socket().connect(s.port, "127.0.0.2"));
  };
  const auto many_choices = [](Served& s) {
    Json body = completion("x", 1);
    body["n"] = 12;
    return s.post("/v1/completions", body).contains("error") ? std::string("refused") : std::string("done");
  };
  const auto windows = [](Served& s) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "a long way to go ";
    s.post("/v1/completions",
           Json{{"prompt", {"The quick brown", text}}, {"logit_bias", {{"300", 100}}}, {"max_tokens", 40}});
    std::this_thread::sleep_for(milliseconds(300));
    const int n = s.get("/v1/status")["windows"]["count"];
    return n > 65 ? std::string("many") : std::string("few");
  };
  const auto large_body = [](Served& s) {
    const auto got =
        s.client().Post("/tokenize", Json{{"content", std::string(5000, 'x')}}.dump(), "application/json");
    return got ? std::to_string(got->status) : std::string("nothing");
  };
  const auto allowed_origin = [](Served& s) {
    const auto got = s.client().Get("/health");
    return got ? got->get_header_value("Access-Control-Allow-Origin") : std::string("nothing");
  };
  const auto repeats = [](Served& s) {
    Json body = completion("x", 100);
    body["logit_bias"] = {{"300", 100}};
    return s.post("/v1/completions", body)["usage"]["completion_tokens"].dump();
  };
  const auto ends_early = [](Served& s) {
    std::thread asking([&] {
      Json body = completion("x", 400);
      body["logit_bias"] = {{"300", 100}};
      s.post("/v1/completions", body);
    });
    for (int i = 0; i < 500 && s.get("/v1/status")["answers"]["submitted"] != 1; ++i) {
    }
    const Json stats = s.stats();
    asking.join();
    return stats["cancelled"].dump();
  };
  const auto saved = [](Served& s) {
    s.post("/v1/completions", completion(std::string(300, 'x'), 1));
    for (int i = 0; i < 100; ++i) {
      const Json cache = s.get("/v1/status")["cache"];
      if (cache["saved"] > 0) return std::string("saved");
      if (cache["not_saved"] > 0) return std::string("not saved");
      std::this_thread::sleep_for(milliseconds(20));
    }
    return std::string("nothing");
  };
  // Starting with streamed experts takes a second or two, to measure the machine.
  Served usual(streamed);
  const Json usual_experts = experts(usual);
  const auto expert_row = [&](const Arguments& more, const std::string& field) {
    return Row{streamed, more, expert_field(field), usual_experts[field].dump()};
  };
  const Look starts = [](Served& s) { return s.answers() ? std::string("starts") : s.end(); };
  const auto traced = [](Served& s) {
    s.post("/v1/completions", completion("a", 1));
    return s.end();
  };
  return {
      {"--model", {{}, {"-m", scripted_model()}, status("/model/architecture")}},
      {"--host", {{}, {"--host", "127.0.0.2"}, listens_elsewhere}},
      {"--api-key", {{}, {"--api-key", "k"}, code_of("/v1/models")}},
      {"--no-key", {{"--host", "0.0.0.0"}, {"--no-key"}, starts}},
      {"--cors", {{}, {"--cors", "https://a.example"}, allowed_origin}},
      {"--name",
       {{}, {"--name", "other"}, [](Served& s) { return s.get("/v1/models")["data"][0]["id"].dump(); }}},
      {"--parallel",
       {{},
        {"--parallel", "2"},
        [](Served& s) { return std::to_string(s.get("/v1/status")["slots"].size()); }}},
      {"--context", {{}, {"-c", "300"}, status("/model/context")}},
      {"--queue", {{"--parallel", "1"}, {"--queue", "1"}, many_choices}},
      {"--prompt-share", {{"--chunk", "32"}, {"--prompt-share", "1"}, windows}},
      {"--max-body", {{}, {"--max-body", "1000"}, large_body}},
      {"--max-repeats", {{}, {"--max-repeats", "7"}, repeats}},
      {"--grace", {{"--stats", "json"}, {"--grace", "0"}, ends_early}},
      {"--threads", {{"-t", "1"}, {"-t", "2"}, status("/model/threads")}},
      {"--pin", {{"-v"}, {"--pin", "on"}, printed}},
      {"--chunk", {{}, {"--chunk", "8"}, status("/model/chunk")}},
      {"--memory-limit", {{}, {"--memory-limit", "1M"}, starts, "starts"}},
      {"--experts", {{}, {"--experts", "resident"}, status("/model/experts")}},
      {"--trunk", {{"--trunk", "map"}, {"--trunk", "copy"}, status("/model/trunk")}},
      {"--budget", expert_row({"--budget", "21M"}, "budget_bytes")},
      {"--policy", expert_row({"--policy", "lru"}, "hits")},
      {"--prefetch", expert_row({"--prefetch", "off"}, "prefetched")},
      {"--io", expert_row({"--io", "threads"}, "io")},
      {"--pack", {streamed, {"--pack", kPebble}, starts, "starts"}},
      {"--trace", {streamed, {"--trace", "/dev/full"}, traced}},
      {"--route-bias", expert_row({"--route-bias", "50"}, "hits")},
      {"--route-bias-prompt", {streamed + small_chunks, {"--route-bias-prompt", "50"}, expert_field("hits")}},
      {"--max-kld", {streamed, {"--max-kld", "0.1"}, starts, "starts"}},
      {"--route-curve", {streamed + Arguments{"--max-kld", "0.1"}, {"--route-curve", curve}, printed}},
      {"--activations", {{}, {"--activations", "f32"}, likely}},
      {"--kv", {{}, {"--kv", "f32"}, likely}},
      {"--reference-kernels", {{"--activations", "f32"}, {"--reference-kernels"}, likely}},
      {"--reuse-edits", {{}, {"--reuse-edits", "on"}, status("/memory/reserved_bytes")}},
      {"--cache-dir", {{}, {"--cache-dir", "/dev/null/none"}, starts, "starts"}},
      {"--cache-size", {{"--cache-dir", (directory / "cache").string()}, {"--cache-size", "1"}, saved}},
      {"--stats", {{}, {"--stats", "json"}, printed}},
      {"--quiet", {{}, {"-q"}, printed}},
      {"--verbose", {{}, {"-v"}, printed}},
  };
}

std::map<std::string, Row> all_rows(const TemporaryDirectory& directory) {
  std::map<std::string, Row> rows = waiting_rows();
  rows.merge(quick_rows(directory));
  return rows;
}

std::set<std::string> documented_flags() {
  std::set<std::string> flags;
  const std::string help = run_program({"serve", "--help"}).out;
  for (const std::string& line : lines_of(help.substr(help.find("usage:")))) {
    const size_t at = line.find("--");
    if (!line.starts_with("  ") || at > 6 || at == std::string::npos) continue;
    flags.insert(line.substr(at, line.find(' ', at) - at));
  }
  return flags;
}

std::string seen(const Row& row, bool more) {
  if (!more && !row.without.empty()) return row.without;
  Arguments arguments = row.base;
  // A flag that the base has already gets the other value.
  for (size_t i = 0; more && i < row.more.size(); ++i) {
    const auto at = std::find(arguments.begin(), arguments.end(), row.more[i]);
    if (at != arguments.end() && at + 1 != arguments.end() && i + 1 < row.more.size())
      *(at + 1) = row.more[++i];
    else
      arguments.push_back(row.more[i]);
  }
  Served server(arguments);
  return row.look(server);
}

TEST(ServeFlags, EachChangesSomethingThatShows) {
  if (!std::filesystem::exists(kPebble)) GTEST_SKIP() << "models/pebble.gguf is not there";
  const TemporaryDirectory directory;
  const std::map<std::string, Row> rows = all_rows(directory);
  // Servers mostly wait, for their disk's speed to be measured or for a timeout.
  std::mutex mutex;
  auto next = rows.begin();
  const auto work = [&] {
    while (true) {
      std::unique_lock lock(mutex);
      if (next == rows.end()) return;
      const auto& [flag, row] = *next++;
      lock.unlock();
      const std::string without = seen(row, false), with = seen(row, true);
      EXPECT_NE(without, with) << flag;
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 8; ++i) workers.emplace_back(work);
  }
  std::set<std::string> tested = {"--port"};  // every server here listens where it was told to
  for (const auto& row : rows) tested.insert(row.first);
  EXPECT_EQ(documented_flags(), tested);
}

}  // namespace
}  // namespace forebay::cli
