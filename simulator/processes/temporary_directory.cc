// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* const named = std::getenv("TMPDIR");
    throw EnvironmentError(fmt::format("no directory for temporary files: {}: {}",
                                       named == nullptr ? "/tmp" : named, error.message()));
  }
  Make((parent / "railyard-XXXXXX").string());
}

TemporaryDirectory::TemporaryDirectory(const std::string& parent) {
  Make((std::filesystem::path(parent) / ".railyard-XXXXXX").string());
}

void TemporaryDirectory::Make(std::string pattern) {
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw EnvironmentError(fmt::format("cannot create {}: {}", pattern, std::strerror(errno)));
  }
  path_ = std::move(pattern);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace railyard
