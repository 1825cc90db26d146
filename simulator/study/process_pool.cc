// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/process_pool.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

pid_t Start(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> words;
  static char name[] = "railyard";
  words.push_back(name);
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw EnvironmentError(std::string("a run cannot be started: ") + std::strerror(error));
  }
  return child;
}

}  // namespace

void RunProcesses(const std::vector<std::vector<std::string>>& commands,
                  const std::vector<std::string>& logs, uint32_t jobs,
                  const std::function<bool(size_t index, int status)>& on_ended) {
  std::map<pid_t, size_t> running;
  size_t next = 0;
  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && running.size() < jobs) {
      running[Start(commands[next], logs[next])] = next;
      ++next;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) {
      throw EnvironmentError(std::string("a run cannot be waited for: ") + std::strerror(errno));
    }
    const auto it = running.find(ended);
    if (it == running.end()) continue;
    const size_t index = it->second;
    running.erase(it);
    const int exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (!on_ended(index, exit)) next = commands.size();
  }
}

}  // namespace railyard
