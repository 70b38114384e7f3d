// A key press changes the buffer, and the whole line is drawn again: no state on the screen has to be tracked
// but the row of the cursor.
#include "cli/line_editor.h"

#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/terminal.h"

namespace forebay::cli {
namespace {

constexpr int kEndOfFile = -1;
constexpr int kInterruptSignal = -2;
constexpr int kTerminateSignal = -3;

constexpr int kEscape = 0x1b;
constexpr int ctrl(char letter) {
  return letter & 0x1f;
}

constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l", kPasteEnd = "\033[201~";

// Handlers take no argument of ours: global by necessity.
volatile std::sig_atomic_t last_signal = 0;
struct sigaction old_interrupt, old_terminate;

void on_signal(int signal) {
  last_signal = signal;
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

size_t terminal_columns(int fd) {
  winsize size = {};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

/// The terminal passes every key on while this lives.
class LineEditor::RawMode {
 public:
  RawMode() {
    ::tcgetattr(STDIN_FILENO, &before_);
    enter();
  }
  ~RawMode() { leave(); }

  void enter() {
    termios raw = before_;
    raw.c_iflag &= ~(ICRNL | IXON | INLCR | ISTRIP);
    raw.c_lflag &= ~(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  void leave() { ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_); }

 private:
  termios before_ = {};
};

LineEditor::LineEditor()
    // Not stdout: that is for answers. A terminal can usually be written through any of its descriptors.
    : out_(::isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : STDIN_FILENO) {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, &old_interrupt);
  ::sigaction(SIGTERM, &action, &old_terminate);
}

LineEditor::~LineEditor() {
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGTERM, &old_terminate, nullptr);
}

void LineEditor::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(out_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the terminal is gone; reading will say so
    text.remove_prefix(static_cast<size_t>(n));
  }
}

int LineEditor::next_byte() {
  // Signals are let in only inside ppoll: one that comes just before is not missed.
  const sigset_t handled = handled_signals();
  sigset_t outside;
  ::pthread_sigmask(SIG_BLOCK, &handled, &outside);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = last_signal != 0 ? -1 : ::ppoll(&input, 1, nullptr, &outside);
  ::pthread_sigmask(SIG_SETMASK, &outside, nullptr);
  if (last_signal == SIGTERM) return kTerminateSignal;
  if (last_signal == SIGINT) {
    last_signal = 0;
    return kInterruptSignal;
  }
  if (ready < 0) return errno == EINTR ? next_byte() : kEndOfFile;  // EINTR: the window changed
  unsigned char byte = 0;
  const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
  if (n < 0 && errno == EINTR) return next_byte();
  return n == 1 ? byte : kEndOfFile;
}

bool LineEditor::input_waits() const {
  // Bytes of one key arrive together; a connection may put a little time between them.
  constexpr int kPatienceMilliseconds = 50;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, kPatienceMilliseconds) == 1;
}

LineEditor::Line LineEditor::read_plain(std::string_view prompt) {
  write(prompt);
  std::string text;
  while (true) {
    const int byte = next_byte();
    if (byte == kTerminateSignal) return {End::kTerminated, {}};
    if (byte == kInterruptSignal || byte == kEndOfFile) {
      write("\n");
      return {byte == kEndOfFile ? End::kEndOfInput : End::kInterrupted, {}};
    }
    if (byte == '\n') return {End::kLine, text};
    text += static_cast<char>(byte);
  }
}

LineEditor::Line LineEditor::read(std::string_view prompt) {
  // A Ctrl-C that came too late to stop the answer is not meant for the prompt.
  if (last_signal == SIGINT) last_signal = 0;
  if (!understands_escapes()) return read_plain(prompt);
  RawMode raw;
  write(kPasteOn);
  buffer_.set({});
  unsent_.clear();
  recalled_ = history_.size();
  drawn_cursor_row_ = 0;
  draw(prompt);

  const auto done = [&](End end) -> Line {
    buffer_.move_to_end();
    draw(prompt);
    write(kPasteOff);
    write("\r\n");
    return {end, end == End::kLine ? buffer_.text() : std::string()};
  };
  while (true) {
    const int byte = next_byte();
    switch (byte) {
      case kEndOfFile:
        return done(End::kEndOfInput);
      case kTerminateSignal:
        return done(End::kTerminated);
      case kInterruptSignal:
      case ctrl('C'):
        return done(End::kInterrupted);
      case '\r':
      case '\n':
        return done(End::kLine);
      case ctrl('D'):
        if (buffer_.text().empty()) return done(End::kEndOfInput);
        buffer_.erase_after();
        break;
      case ctrl('Z'):
        raw.leave();
        ::raise(SIGTSTP);
        raw.enter();
        drawn_cursor_row_ = 0;
        break;
      default:
        apply_key(byte);
    }
    draw(prompt);
  }
}

void LineEditor::apply_key(int byte) {
  switch (byte) {
    case ctrl('A'):
      return buffer_.move_to_start();
    case ctrl('E'):
      return buffer_.move_to_end();
    case ctrl('B'):
      return buffer_.move_left();
    case ctrl('F'):
      return buffer_.move_right();
    case ctrl('P'):
      return recall(-1);
    case ctrl('N'):
      return recall(1);
    case ctrl('H'):
    case 0x7f:
      return buffer_.erase_before();
    case ctrl('K'):
      return buffer_.erase_to_end();
    case ctrl('U'):
      return buffer_.erase_to_start();
    case ctrl('W'):
      return buffer_.erase_word_before();
    case ctrl('L'):
      write("\033[H\033[2J");
      drawn_cursor_row_ = 0;
      return;
    case '\t':
      return buffer_.insert("\t");
    case kEscape:
      return apply_escape();
    default:
      if (byte >= 0x20) insert_character(byte);
  }
}

void LineEditor::insert_character(int lead) {
  std::string character(1, static_cast<char>(lead));
  const size_t n_bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  while (character.size() < n_bytes && input_waits()) {
    const int byte = next_byte();
    if (byte < 0) break;
    character += static_cast<char>(byte);
  }
  buffer_.insert(character);
}

void LineEditor::apply_escape() {
  if (!input_waits()) return;  // the Escape key alone
  const int second = next_byte();
  if (second == 'b') return buffer_.move_word_left();
  if (second == 'f') return buffer_.move_word_right();
  if (second == 0x7f) return buffer_.erase_word_before();
  if (second != '[' && second != 'O') return;
  // Parameters, then one letter or ~.
  std::string sequence;
  while (sequence.size() < 16) {
    const int byte = next_byte();
    if (byte < 0) return;
    sequence += static_cast<char>(byte);
    if (byte >= 0x40 && byte <= 0x7e) break;
  }
  if (sequence == "A") return recall(-1);
  if (sequence == "B") return recall(1);
  if (sequence == "C") return buffer_.move_right();
  if (sequence == "D") return buffer_.move_left();
  if (sequence == "1;5C" || sequence == "1;3C") return buffer_.move_word_right();
  if (sequence == "1;5D" || sequence == "1;3D") return buffer_.move_word_left();
  if (sequence == "H" || sequence == "1~" || sequence == "7~") return buffer_.move_to_start();
  if (sequence == "F" || sequence == "4~" || sequence == "8~") return buffer_.move_to_end();
  if (sequence == "3~") return buffer_.erase_after();
  if (sequence == "200~") return paste();
}

/// Everything up to the end mark is text, line ends included.
void LineEditor::paste() {
  std::string text;
  while (!text.ends_with(kPasteEnd)) {
    const int byte = next_byte();
    if (byte < 0) return;
    text += byte == '\r' ? '\n' : static_cast<char>(byte);
  }
  text.resize(text.size() - kPasteEnd.size());
  buffer_.insert(without_controls(text));
}

void LineEditor::recall(int step) {
  if (step < 0 ? recalled_ == 0 : recalled_ == history_.size()) return;
  if (recalled_ == history_.size()) unsent_ = buffer_.text();
  recalled_ += step;
  buffer_.set(recalled_ == history_.size() ? unsent_ : history_[recalled_]);
}

void LineEditor::remember(std::string line) {
  if (line.empty() || (!history_.empty() && history_.back() == line)) return;
  history_.push_back(std::move(line));
}

void LineEditor::draw(std::string_view prompt) {
  const size_t n_columns = terminal_columns(out_);
  const std::string left = std::string(prompt) + displayed(buffer_.text().substr(0, buffer_.cursor()));
  const std::string line = std::string(prompt) + displayed(buffer_.text());
  const ScreenPosition cursor = position_after(left, n_columns);
  const ScreenPosition end = position_after(line, n_columns);

  std::string frame;
  if (drawn_cursor_row_ > 0) frame += fmt::format("\033[{}A", drawn_cursor_row_);
  frame += "\r\033[J" + line;
  // A terminal keeps the cursor in the last column of a full row until something follows.
  if (end.row > 0 && end.column == 0) frame += "\r\n";
  if (end.row > cursor.row) frame += fmt::format("\033[{}A", end.row - cursor.row);
  frame += '\r';
  if (cursor.column > 0) frame += fmt::format("\033[{}C", cursor.column);
  write(frame);
  drawn_cursor_row_ = cursor.row;
}

}  // namespace forebay::cli
