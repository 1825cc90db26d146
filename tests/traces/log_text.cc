// SPDX-License-Identifier: GPL-2.0-only
#include "tests/traces/log_text.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace railyard::testing {

TemporaryFile::TemporaryFile(const std::string& content, const std::string& suffix)
    : path_(::testing::TempDir() + "railyard_XXXXXX" + suffix) {
  close(mkstemps(path_.data(), static_cast<int>(suffix.size())));
  std::ofstream(path_, std::ios::binary) << content;
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

std::string ReadFile(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

std::string Prefix(uint32_t rank, uint32_t ranks_per_host) {
  return fmt::format("node{}:{}:{} [{}] NCCL INFO ", rank / ranks_per_host, 1000 + rank,
                     1000 + rank, rank % ranks_per_host);
}

std::string CallMessage(const CallText& call) {
  return fmt::format(
      "{}: opCount {} sendbuff 0x7f0000000100 recvbuff 0x7f0000000200 count {} datatype {} op 0 "
      "root {} comm {} [nranks={}] stream {}",
      call.name, call.op_count, call.count, call.datatype, call.root, call.comm, call.nranks,
      call.stream);
}

std::string InitLines(uint32_t rank, uint32_t nranks, const std::string& comm,
                      const std::string& comm_id, uint32_t ranks_per_host) {
  const uint32_t device = rank % ranks_per_host;
  const std::string line = fmt::format(
      "{}ncclCommInitRank comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId 1b000 "
      "commId {} - Init ",
      Prefix(rank, ranks_per_host), comm, rank, nranks, device, device, comm_id);
  return line + "START\n" + line + "COMPLETE\n";
}

ImportResult Import(const std::string& log, NcclLogOptions options) {
  const TemporaryFile file(log);
  options.files = {file.path()};
  ImportResult result;
  result.import = ReadNcclLogs(options, result.diagnostics);
  ExpectCallsAddUp(result.import.report);
  EXPECT_EQ(result.import.trace.has_value(), !result.diagnostics.HasErrors());
  return result;
}

void ExpectCallsAddUp(const ImportReport& report) {
  uint64_t by_reason = 0;
  for (const DroppedCalls& dropped : report.dropped) by_reason += dropped.count;
  EXPECT_EQ(by_reason, report.calls_dropped());
  for (const ImportedFile& file : report.files) {
    EXPECT_EQ(file.calls_seen, file.calls_imported + file.calls_dropped) << file.path;
  }
}

}  // namespace railyard::testing
