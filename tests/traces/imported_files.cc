// SPDX-License-Identifier: GPL-2.0-only
#include "tests/traces/imported_files.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "traces/import/import.h"

namespace railyard::testing {

ImportedFiles::ImportedFiles() {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  directory_ = ::testing::TempDir() + "/imported_" + test->test_suite_name() + "_" + test->name();
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
}

ImportedFiles::~ImportedFiles() { std::filesystem::remove_all(directory_); }

std::string ImportedFiles::Write(const std::string& name, const std::string& bytes) const {
  std::string path = directory_ + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

const TraceImport& ImportedFiles::Import(const std::vector<std::string>& paths,
                                         const ImportOptions& options) {
  Diagnostics diagnostics;
  import_ = ImportFiles(paths, kAutoFormat, options, diagnostics);
  findings_ = diagnostics.ToString();
  // Either a trace or a reason, and an account of every call.
  EXPECT_EQ(import_.trace.has_value(), !diagnostics.HasErrors()) << findings_;
  EXPECT_EQ(import_.report.calls_seen(),
            import_.report.calls_imported() + import_.report.calls_dropped());
  return import_;
}

std::pair<uint64_t, uint64_t> ImportedFiles::Kind(CollectiveKind kind) const {
  const ImportedKind& imported = import_.report.by_kind[static_cast<size_t>(kind)];
  return {imported.calls, imported.bytes};
}

}  // namespace railyard::testing
