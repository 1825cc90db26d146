// SPDX-License-Identifier: GPL-2.0-only
// Real inputs are not part of the project; tests that read them find them here.
#pragma once

#include <optional>
#include <string>

#include "tests/support/lacking.h"

namespace railyard::testing {

// RAILYARD_REFERENCE_DIR, by default ../shared/reference beside the source tree; nullopt if absent.
std::optional<std::string> ReferenceDir();

}  // namespace railyard::testing

// First statement of a test that needs the reference directory; declares `reference_dir`.
#define RAILYARD_REQUIRE_REFERENCE_DIR()                                          \
  const auto reference_dir_or_none = ::railyard::testing::ReferenceDir();         \
  if (!reference_dir_or_none) {                                                   \
    RAILYARD_LACK("the reference inputs are absent: set RAILYARD_REFERENCE_DIR"); \
  }                                                                               \
  const std::string& reference_dir = *reference_dir_or_none
