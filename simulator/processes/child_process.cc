// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/child_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
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
constexpr int kCannotStart = 127;  // as a shell says it

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

// In the child: becomes this program with other arguments.
[[noreturn]] void BecomeProgram(std::vector<char*> words, const std::string& log) {
  if (!log.empty()) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) {
      _exit(kCannotStart);
    }
  }
  execv("/proc/self/exe", words.data());
  _exit(kCannotStart);
}

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
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  is_copy_ = false;
  parent_ = getpid();
  id_ = ForkChild("a run", SIGTERM);
  if (id_ == 0) BecomeProgram(std::move(argv), log);
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
  status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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

}  // namespace railyard
