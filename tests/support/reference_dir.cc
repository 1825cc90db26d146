// SPDX-License-Identifier: GPL-2.0-only
#include "tests/support/reference_dir.h"

#include <cstdlib>
#include <filesystem>

namespace railyard::testing {

std::optional<std::string> ReferenceDir() {
  const char* configured = std::getenv("RAILYARD_REFERENCE_DIR");
  const std::string dir =
      configured != nullptr ? configured : RAILYARD_SOURCE_DIR "/../shared/reference";
  if (!std::filesystem::is_directory(dir)) return std::nullopt;
  return dir;
}

}  // namespace railyard::testing
