// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/perf/temporary_directory.h"

#include <cstdlib>
#include <filesystem>

#include "analysis/output_file.h"

namespace railyard {

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "railyard-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) ThrowErrno("create", path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace railyard
