// SPDX-License-Identifier: GPL-2.0-only
#include "tests/traces/nsys/nsys_file.h"

#include <gtest/gtest.h>

namespace railyard::testing {

NsysFile::NsysFile(const std::string& path) {
  EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  Run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)");
  Run("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, globalTid INTEGER, "
      "textId INTEGER, domainId INTEGER, binaryData TEXT)");
  Run("CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, name TEXT, "
      "type INTEGER, offset INTEGER)");
  Run("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER)");
  Run("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, globalTid INTEGER, "
      "correlationId INTEGER)");
  // As NCCL 2.25 registers them.
  Run("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES "
      "(1, 1, 'NCCL communicator ID', 18, NULL), (1, 1, 'No. of ranks', 5, 8), "
      "(1, 1, 'Rank', 5, 12), (1, 2, 'NCCL communicator ID', 18, NULL), "
      "(1, 2, 'Message size [bytes]', 22, 8), (1, 3, 'NCCL communicator ID', 18, NULL), "
      "(1, 3, 'Message size [bytes]', 22, 8), (1, 3, 'Peer rank', 5, 16), "
      "(1, 6, 'NCCL communicator ID', 18, NULL), (1, 6, 'Parent NCCL communicator ID', 18, 8), "
      "(1, 6, 'No. of ranks', 5, 16), (1, 6, 'Rank', 5, 20), (1, 6, 'CUDA device', 5, 24), "
      "(1, 6, 'Color', 5, 28), (1, 6, 'Key', 5, 32)");
}

NsysFile::~NsysFile() { sqlite3_close(database_); }

void NsysFile::Run(const std::string& sql) {
  ASSERT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database_);
}

void NsysFile::Range(int64_t start, uint64_t process, const std::string& name, uint32_t schema,
                     const std::vector<uint64_t>& fields, uint64_t thread) {
  std::string payload(32, '\0');
  payload[8] = static_cast<char>(schema);
  for (const uint64_t field : fields) {
    for (int i = 0; i < 8; ++i) payload += static_cast<char>(field >> (8 * i) & 0xff);
  }
  std::string hex;
  for (const char c : payload) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  Run("INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " +
      std::to_string(start + 5) + ", '" + name + "', " + std::to_string(process << 24 | thread) +
      ", NULL, 1, " + (schema == 0 ? "NULL" : "x'" + hex + "'") + ")");
}

void NsysFile::Split(int64_t start, uint64_t process, uint64_t communicator, uint64_t parent,
                     uint64_t rank_count, uint64_t rank, uint64_t color, uint64_t key) {
  Range(start, process, "ncclCommSplit", 6,
        {communicator, parent, rank_count | rank << 32, color << 32, key});
}

void NsysFile::Kernel(int64_t launch, int64_t start, int64_t end, uint64_t process, uint64_t stream,
                      const std::string& name) {
  const std::string serialized = std::to_string(process << 24);
  const std::string correlation = std::to_string(++launches_);
  const std::string name_id = std::to_string(++names_);
  Run("INSERT INTO StringIds VALUES (" + name_id + ", '" + name + "')");
  Run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + ", " +
      std::to_string(end) + ", 0, " + std::to_string(stream) + ", " + correlation + ", " +
      serialized + ", " + name_id + ")");
  Run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(launch) + ", " +
      serialized + ", " + correlation + ")");
}

void NsysFile::AddTwoRanks() {
  for (uint64_t rank = 0; rank < 2; ++rank) {
    const uint64_t process = 100 + rank;
    const auto start = static_cast<int64_t>(rank);
    Range(start, process, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
    Range(start + 10, process, "ncclAllReduce", 2, {0xabcd, 4096});
    Range(start + 20, process, "ncclGroupStart", 0, {});
    Range(start + 30, process, "ncclSend", 3, {0xabcd, 64, 1 - rank});
    Range(start + 40, process, "ncclRecv", 3, {0xabcd, 64, 1 - rank});
    Range(start + 50, process, "ncclGroupEnd", 0, {});
    Kernel(start + 12, 1000, 1300, process);
    Kernel(start + 52, 1500, 1600, process, 9, "ncclDevKernel_SendRecv");
  }
}

}  // namespace railyard::testing
