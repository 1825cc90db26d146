// SPDX-License-Identifier: GPL-2.0-only
// Log text for tests: lines in NCCL's forms, temporary files, and imports of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_reader.h"

namespace railyard::testing {

// A file in the test's temporary directory that goes away with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& suffix = ".log");
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

// `HOST:PID:PID [DEV] NCCL INFO `; the process of rank r on servers of 8 is pid 1000 + r.
std::string Prefix(uint32_t rank, uint32_t ranks_per_host = 8);

struct CallText {
  std::string name = "AllReduce";
  std::string op_count = "0";
  uint64_t count = 1024;
  uint32_t datatype = 7;
  uint32_t root = 0;
  std::string comm = "0x55aa00000010";
  uint32_t nranks = 2;
  std::string stream = "0x55aa00000020";
};
// The message of ncclEnqueueCheck, without prefix and line break.
std::string CallMessage(const CallText& call);

// `ncclCommInitRank comm … commId …`, START and COMPLETE, of one rank.
std::string InitLines(uint32_t rank, uint32_t nranks, const std::string& comm,
                      const std::string& comm_id, uint32_t ranks_per_host = 8);

struct ImportResult {
  TraceImport import;
  Diagnostics diagnostics;
};
ImportResult Import(const std::string& log, NcclLogOptions options = {});
// Every import accounts for all calls: each one seen is imported or dropped, per file and by
// reason.
void ExpectCallsAddUp(const ImportReport& report);

}  // namespace railyard::testing
