// SPDX-License-Identifier: GPL-2.0-only
// Imports files that a test writes, or that lie in the reference directory.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"

namespace railyard::testing {

class ImportedFiles {
 public:
  ImportedFiles();  // a directory of the test's own, removed at its end
  ~ImportedFiles();
  ImportedFiles(const ImportedFiles&) = delete;
  ImportedFiles& operator=(const ImportedFiles&) = delete;

  std::string Write(const std::string& name, const std::string& bytes) const;  // its path

  // Imports with the format recognized by content; earlier findings are forgotten.
  const TraceImport& Import(const std::vector<std::string>& paths,
                            const ImportOptions& options = {});
  const TraceImport& import() const { return import_; }
  std::string findings() const { return findings_; }
  // Calls and bytes that the report has of each kind; 0 of a kind that it does not have.
  std::pair<uint64_t, uint64_t> Kind(CollectiveKind kind) const;
  uint64_t Dropped(CallDropReason reason) const { return import_.report.DroppedFor(reason).count; }

 private:
  std::string directory_;
  TraceImport import_;
  std::string findings_;
};

}  // namespace railyard::testing
