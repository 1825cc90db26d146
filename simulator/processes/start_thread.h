// SPDX-License-Identifier: GPL-2.0-only
// Starts threads, and says so where there is none to be had.
#pragma once

#include <system_error>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Returns what `start()` returns, which starts a thread. Throws EnvironmentError if the system has
// no memory or no number for one.
template <typename Start>
auto StartThread(Start start) {
  try {
    return start();
  } catch (const std::system_error& error) {
    throw EnvironmentError(
        fmt::format("not enough memory or processes for a thread: {}", error.code().message()));
  }
}

}  // namespace railyard
