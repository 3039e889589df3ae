// SPDX-License-Identifier: Apache-2.0
#include "tuner/contenders/apart.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tuner/interrupt.hpp"
#include "tuner/measure/measure.hpp"

extern char** environ;

namespace rnntune::tuner {
namespace {

constexpr int kPollMs = 200;  // interrupts are passed on this often

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Error failed(const char* what, int error) {
  return {ErrorCode::internal, std::string(what) + ": " + std::strerror(error)};
}

Result<pid_t> spawn(const std::vector<std::string>& arguments, int out, int words) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, words, STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return failed("posix_spawn", error);
  return child;
}

// Hands over the whole lines of `text`, and keeps what is left.
void take_lines(std::string& text, const std::function<void(const std::string&)>& line) {
  for (std::size_t end; (end = text.find('\n')) != text.npos;) {
    line(text.substr(0, end));
    text.erase(0, end + 1);
  }
}

// Until the other end is closed; false where it fell silent.
bool read_all(int fd, pid_t child, double silence_s,
              const std::function<void(const std::string&)>& line) {
  std::string text;
  bool told = false;
  for (double heard_us = steady_clock().now_us();;) {
    if (interrupted() && !told) told = kill(child, SIGINT) == 0;
    if (steady_clock().now_us() - heard_us > silence_s * 1e6) return false;
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, kPollMs) <= 0) continue;  // nothing yet, or a signal came
    char bytes[65536];
    const ssize_t count = read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    heard_us = steady_clock().now_us();
    text.append(bytes, static_cast<std::size_t>(count));
    take_lines(text, line);
  }
}

std::string last_line(int fd) {
  char bytes[4096];
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(sizeof bytes));
  const ssize_t count = pread(fd, bytes, sizeof bytes, from);
  std::string text(bytes, static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t start = text.rfind('\n');
  return start == text.npos ? text : text.substr(start + 1);
}

}  // namespace

std::string Ending::text() const {
  std::string text = "exited with " + std::to_string(exit_code);
  if (signal != 0) {
    text = "died of signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  if (hung) text = "hung and was killed";
  return words.empty() ? text : text + ": " + words;
}

Result<Ending> run_apart(const std::vector<std::string>& arguments, double silence_s,
                         const std::function<void(const std::string&)>& line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe2", errno);
  Descriptor in(ends[0]), out(ends[1]), words(memfd_create("stderr", MFD_CLOEXEC));
  if (words.get() < 0) return failed("memfd_create", errno);
  const Result<pid_t> child = spawn(arguments, out.get(), words.get());
  if (!child.ok()) return child.error();
  out.close();
  Ending ending;
  ending.hung = !read_all(in.get(), *child, silence_s, line);
  if (ending.hung) kill(*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  ending.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.words = last_line(words.get());
  return ending;
}

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace rnntune::tuner
