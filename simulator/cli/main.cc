// SPDX-License-Identifier: GPL-2.0-only
#include <array>
#include <csignal>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include "simulator/cli/cli.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/engine/huge_pages.h"

namespace {

// Files must not get the numbers of standard streams that are closed, and what may not be written
// fails where it is written rather than by a signal.
void PrepareStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // Nobody reads messages that have nowhere to go, but results must not be lost in silence.
    open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);  // requests a run's progress; other commands ignore it
}

// glibc loads its unwinder when an exception first passes through one of its functions, and aborts
// if there is no memory for it, which std::bad_alloc means.
void LoadUnwinder() {
  std::array<void*, 1> frame;
  backtrace(frame.data(), static_cast<int>(frame.size()));
}

}  // namespace

int main(int argc, char** argv) {
  PrepareStreams();
  LoadUnwinder();
  railyard::PreferHugePages();
  railyard::InitVirtualTime();
  return railyard::RunCli(argc, argv);
}
