// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/file_size.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace railyard {

bool IsWithinSize(const std::string& path, uint64_t bytes_max, Diagnostics& diagnostics) {
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(path, failure);
  if (failure || bytes <= bytes_max) return true;
  diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                    fmt::format("{} bytes (expected at most {})", bytes, bytes_max));
  return false;
}

}  // namespace railyard
