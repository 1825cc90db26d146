// SPDX-License-Identifier: GPL-2.0-only
// Writes profiles as Kineto does, and imports them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/import/import.h"

namespace railyard {

struct Imported {
  TraceImport import;
  Diagnostics diagnostics;
};

// Each text is a file; what the content is for is left to be found out.
inline Imported Import(const std::vector<std::string>& texts, const ImportOptions& options = {}) {
  const std::string directory = ::testing::TempDir() + "kineto_reader_test_" +
                                ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::vector<std::string> paths;
  for (size_t i = 0; i < texts.size(); ++i) {
    paths.push_back(fmt::format("{}/rank{}.json", directory, i));
    std::ofstream(paths.back()) << texts[i];
  }
  Imported imported;
  imported.import = ImportFiles(paths, kAutoFormat, options, imported.diagnostics);
  std::filesystem::remove_all(directory);
  return imported;
}

inline std::string File(uint32_t rank, const std::string& events) {
  return fmt::format(
      R"({{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}},
"traceEvents": [{}]}})",
      rank, events);
}

// `arguments` begins with a comma where there are any.
inline std::string Kernel(const std::string& start, const std::string& duration, int stream,
                          int correlation, const std::string& arguments) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
"pid": 0, "tid": {2}, "ts": {0}, "dur": {1},
"args": {{"device": 0, "stream": {2}, "correlation": {3}, "External id": {3}{4}}}}})",
      start, duration, stream, correlation, arguments);
}

inline constexpr const char* kAllReduce =
    R"(, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
"Group size": 2, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]")";

// The host's record of a call with this number, and as many elements in and out.
inline std::string HostRecord(int external_id, const std::string& name, int in, int out,
                              const std::string& more = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": {0}, "dur": 1,
"args": {{"External id": {0}, "Collective name": "{1}", "In msg nelems": {2}, "Out msg nelems": {3},
"Group size": 2, "dtype": "Float", "Process Group Name": "0"{4}}}}})",
      external_id, name, in, out, more);
}

}  // namespace railyard
