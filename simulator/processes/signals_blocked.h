// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <csignal>

namespace railyard {

// Blocks all signals for this thread while it lives, and for threads that this thread starts
// meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Returns the mask that was in effect before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace railyard
