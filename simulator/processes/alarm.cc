// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/alarm.h"

#include <sys/time.h>

namespace railyard {
namespace {

void IgnoreButWake(int /*signal*/) {}

void SetTimer(int64_t seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = seconds;
  // Again each second: the first may come before anybody waits.
  timer.it_interval.tv_sec = seconds > 0 ? 1 : 0;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

Alarm::Alarm(int64_t seconds) {
  struct sigaction action = {};
  action.sa_handler = &IgnoreButWake;
  sigaction(SIGALRM, &action, &before_);
  SetTimer(seconds);
}

Alarm::~Alarm() {
  SetTimer(0);
  sigaction(SIGALRM, &before_, nullptr);
}

}  // namespace railyard
