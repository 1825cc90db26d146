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
  // `fields`: the payload's 64-bit words. Schema 0: no payload.
  void Range(int64_t start, uint64_t process, const std::string& name, uint32_t schema,
             const std::vector<uint64_t>& fields, uint64_t thread = 0);
  // Two ranks that make an AllReduce, then exchange messages.
  void AddTwoRanks();

 private:
  sqlite3* database_ = nullptr;
};

}  // namespace railyard::testing
