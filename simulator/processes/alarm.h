// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <csignal>
#include <cstdint>

namespace railyard {

// Wakes a wait for a process (ChildProcess::Wait) after the given number of seconds, and every
// second from then on. It owns SIGALRM while it lives; only one may exist at a time.
class Alarm {
 public:
  explicit Alarm(int64_t seconds);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

 private:
  struct sigaction before_;
};

}  // namespace railyard
