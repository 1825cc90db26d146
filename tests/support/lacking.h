// SPDX-License-Identifier: GPL-2.0-only
// Ends tests that this machine cannot run, as tests/support/lacking.py does.
#pragma once

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

namespace railyard::testing {

inline bool IsCi() {
  const char* const ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

}  // namespace railyard::testing

// Skips a test for this reason; in CI it fails.
#define RAILYARD_LACK(why)                            \
  do {                                                \
    if (::railyard::testing::IsCi()) FAIL() << (why); \
    GTEST_SKIP() << (why);                            \
  } while (false)
