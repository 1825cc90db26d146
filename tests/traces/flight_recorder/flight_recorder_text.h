// SPDX-License-Identifier: GPL-2.0-only
// Writes dumps of PyTorch's Flight Recorder and imports them.
#pragma once

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

// Each content is the dump of the rank of its place, as PyTorch names it.
inline Imported Import(const std::vector<std::string>& contents,
                       const ImportOptions& options = {}) {
  const std::string directory = ::testing::TempDir() + "flight_recorder_test_" +
                                ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (size_t i = 0; i < contents.size(); ++i) {
    std::ofstream(fmt::format("{}/nccl_trace_rank_{}", directory, i), std::ios::binary)
        << contents[i];
  }
  Imported imported;
  imported.import = ImportFiles({directory}, kAutoFormat, options, imported.diagnostics);
  std::filesystem::remove_all(directory);
  return imported;
}

inline std::string Entry(int record, int sequence, const std::string& state) {
  return fmt::format(
      R"j({{"record_id": {}, "process_group": ["0", "default_pg"], "collective_seq_id": {},
"profiling_name": "nccl:all_reduce", "input_sizes": [[3, 4]], "input_dtypes": ["Float"],
"output_sizes": [[3, 4]], "output_dtypes": ["Float"], "state": "{}", "is_p2p": false}})j",
      record, sequence, state);
}

inline std::string Dump(const std::string& entries) {
  return R"j({"version": "2.5", "pg_config": {"0": {"name": "0", "desc": "default_pg",
"ranks": "[0, 1]"}}, "entries": [)j" +
         entries + "]}";
}

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Replaces the group of two ranks by one of `ranks`.
inline std::string OfGroup(const std::string& dump, const std::string& ranks) {
  return Replaced(dump, "[0, 1]", ranks);
}

inline std::string Message(int record, const std::string& name, const std::string& state) {
  return Replaced(Replaced(Entry(record, 7, state), "all_reduce", name), "\"is_p2p\": false",
                  "\"is_p2p\": true");
}

inline std::string Numbered(int record, const std::string& name, int number,
                            const std::string& state) {
  return Replaced(Message(record, name, state), "\"is_p2p\": true",
                  fmt::format("\"is_p2p\": true, \"p2p_seq_id\": {}", number));
}

// A dump of one collective with tensors of these sizes.
inline std::string DumpOf(const char* name, const char* inputs, const char* outputs) {
  return Dump(fmt::format(
      R"j({{"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
"profiling_name": "{}", "input_sizes": {}, "input_dtypes": ["Float"],
"output_sizes": {}, "output_dtypes": ["Float"], "state": "completed", "is_p2p": false}})j",
      name, inputs, outputs));
}

}  // namespace railyard
