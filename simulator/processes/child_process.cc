// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/signals_blocked.h"

namespace railyard {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
// For a program whose output is wanted, and which may hang.
constexpr unsigned kProgramSecondsMax = 600;

// Forks a child that gets `at_parents_death` when its parent dies.
pid_t ForkChild(std::string_view what, int at_parents_death) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    throw EnvironmentError(fmt::format("{} cannot be forked: {}", what, std::strerror(errno)));
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, at_parents_death);
    if (getppid() != parent) _exit(1);
  }
  return child;
}

// Returns the words as exec() takes them. They must outlive the result.
std::vector<char*> Argv(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

// Writes standard output and error to `file` from now on.
bool PrintTo(int file) {
  return file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

// In the child: becomes this program with other arguments.
[[noreturn]] void BecomeRailyard(const std::vector<char*>& argv, const std::string& log) {
  if (log.empty() || PrintTo(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644))) {
    execv("/proc/self/exe", argv.data());
  }
  _exit(kNotStarted);
}

// In the child: becomes another program, which prints to `file`.
[[noreturn]] void BecomeProgram(const std::vector<char*>& argv, const std::string& directory,
                                int file) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && PrintTo(file)) {
    alarm(kProgramSecondsMax);
    if (directory.empty() || chdir(directory.c_str()) == 0) execvp(argv.front(), argv.data());
    dprintf(file, "cannot be started: %s", std::strerror(errno));
  }
  _exit(kNotStarted);
}

int ShellStatus(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A file in memory without a name, which is closed with this object.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("railyard", MFD_CLOEXEC)) {
    if (file_ < 0) {
      throw EnvironmentError(
          fmt::format("no memory for a program's output: {}", std::strerror(errno)));
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(file_); }

  int descriptor() const { return file_; }

  std::string Read() const {
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t count =
          pread(file_, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text;
      text.append(buffer.data(), static_cast<size_t>(count));
    }
  }

 private:
  int file_;
};

}  // namespace

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, 0)), parent_(other.parent_), is_copy_(other.is_copy_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(parent_, other.parent_);
  std::swap(is_copy_, other.is_copy_);
  return *this;
}

// End() throws nothing: sleep_for() could only with a clock that throws.
ChildProcess::~ChildProcess() { End(); }  // NOLINT(bugprone-exception-escape)

bool ChildProcess::Fork(std::string_view what) {
  End();
  is_copy_ = true;
  parent_ = getpid();
  id_ = ForkChild(what, SIGKILL);
  if (id_ > 0) return false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  return true;
}

void ChildProcess::Start(const std::vector<std::string>& arguments, const std::string& log) {
  End();
  std::vector<std::string> words = {"railyard"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = Argv(words);
  is_copy_ = false;
  parent_ = getpid();
  id_ = ForkChild("a run", SIGTERM);
  if (id_ == 0) BecomeRailyard(argv, log);
}

void ChildProcess::End() {
  if (id_ <= 0 || parent_ != getpid()) return;
  int status = 0;
  if (!is_copy_) {
    kill(id_, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!HasEnded(status) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (id_ <= 0) return;
  }
  kill(id_, SIGKILL);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  id_ = 0;
}

void ChildProcess::AskToEnd() const {
  if (id_ > 0) kill(id_, SIGTERM);
}

bool ChildProcess::HasEnded(int& status) {
  const pid_t ended = waitpid(id_, &status, WNOHANG);
  if (ended == 0) return false;
  if (ended < 0) {
    throw EnvironmentError(fmt::format("cannot wait for a run: {}", std::strerror(errno)));
  }
  id_ = 0;
  status = ShellStatus(status);
  return true;
}

std::optional<ChildProcess::Exit> ChildProcess::WaitForAny(std::span<ChildProcess* const> processes,
                                                           const std::function<void()>& on_wake) {
  // Signals arrive in sigsuspend() only, so that none is missed between a look and the wait.
  const SignalsBlocked blocked;
  std::optional<Exit> exit;
  for (bool is_first = true; !exit; is_first = false) {
    if (!is_first) sigsuspend(&blocked.before());
    if (!is_first && on_wake) on_wake();
    for (size_t i = 0; i < processes.size() && !exit; ++i) {
      int status = 0;
      if (processes[i]->is_running() && processes[i]->HasEnded(status)) exit = Exit{i, status};
    }
    if (!exit && NotedInterruption() != 0) break;
  }
  return exit;
}

std::optional<int> ChildProcess::Wait(const std::function<void()>& on_wake) {
  ChildProcess* const self = this;
  const auto exit = WaitForAny({&self, 1}, on_wake);
  return exit ? std::optional<int>(exit->status) : std::nullopt;
}

std::string ProgramEnd::OneLine() const {
  const size_t first = output.find_first_not_of('\n');
  if (first == std::string::npos) return {};
  std::string line = output.substr(first, output.find_last_not_of('\n') + 1 - first);
  std::ranges::replace(line, '\n', ';');
  return line;
}

ProgramEnd OutputOf(std::vector<std::string> words, const std::string& directory) {
  const std::vector<char*> argv = Argv(words);
  const MemoryFile output;
  const pid_t child = ForkChild(words.front(), SIGTERM);
  if (child == 0) BecomeProgram(argv, directory, output.descriptor());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno == EINTR) continue;
    throw EnvironmentError(
        fmt::format("cannot wait for {}: {}", words.front(), std::strerror(errno)));
  }
  return {ShellStatus(status), output.Read()};
}

}  // namespace railyard
