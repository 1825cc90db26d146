// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "railyard-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) {
    throw EnvironmentError(fmt::format("cannot create {}: {}", path_, std::strerror(errno)));
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace railyard
