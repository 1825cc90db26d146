// SPDX-License-Identifier: GPL-2.0-only
// Writes small exports of Nsight Systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace railyard::testing {

// An export with the tables that the reader needs; complete when it is destroyed.
class NsysFile {
 public:
  explicit NsysFile(const std::string& path);
  ~NsysFile();
  NsysFile(const NsysFile&) = delete;
  NsysFile& operator=(const NsysFile&) = delete;

  void Run(const std::string& sql);
  // A range of 5 ns. `fields`: the payload's 64-bit words. Schema 0: no payload.
  void Range(int64_t start, uint64_t process, const std::string& name, uint32_t schema,
             const std::vector<uint64_t>& fields, uint64_t thread = 0);
  // As ncclCommSplit states it: rank and rank count are the parent's.
  void Split(int64_t start, uint64_t process, uint64_t communicator, uint64_t parent,
             uint64_t rank_count, uint64_t rank, uint64_t color, uint64_t key);
  // A kernel that was launched at `launch` by a thread of the process.
  void Kernel(int64_t launch, int64_t start, int64_t end, uint64_t process, uint64_t stream = 7,
              const std::string& name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  // Two ranks that make an AllReduce, then exchange messages.
  void AddTwoRanks();

 private:
  sqlite3* database_ = nullptr;
  int64_t names_ = 0;
  int64_t launches_ = 0;
};

}  // namespace railyard::testing
