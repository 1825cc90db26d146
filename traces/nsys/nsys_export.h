// SPDX-License-Identifier: GPL-2.0-only
// NCCL's calls in a database that Nsight Systems exports (nsys export --type sqlite): NVTX ranges,
// with a payload that says communicator, bytes, root or peer where NCCL is 2.19 or newer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct NsysRange {
  std::string name;  // "ncclAllReduce"
  int64_t start_ns = 0;
  uint64_t process = 0;  // the serialized id of the process, unique in the file
  uint64_t thread = 0;
  // Of the payload, as far as it has them.
  std::optional<uint64_t> communicator;
  std::optional<uint64_t> bytes;
  std::optional<int64_t> root;
  std::optional<int64_t> peer;
  std::optional<int64_t> rank;
  std::optional<int64_t> rank_count;
};

// Shows every NVTX range whose name begins with "nccl" to `visit`, by its start. False after an
// error: no SQLite database, a damaged one, or one without NVTX events. `name`: the file in
// findings; `path`: where the database lies. Views and triggers of the database are not run.
bool ReadNsysRanges(const std::string& path, const std::string& name,
                    const std::function<void(NsysRange&&)>& visit, Diagnostics& diagnostics);

}  // namespace railyard
