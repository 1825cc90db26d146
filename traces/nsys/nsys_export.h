// SPDX-License-Identifier: GPL-2.0-only
// Reads NCCL's calls from a database that Nsight Systems exports (nsys export --type sqlite): NVTX
// ranges, whose payload gives communicator, bytes, root or peer with NCCL 2.19 or newer, and the
// kernels that the calls launched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"

struct sqlite3;

namespace railyard {

struct NsysRange {
  std::string name;  // "ncclAllReduce"
  int64_t start_ns = 0;
  int64_t end_ns = 0;    // equals the start if the range has no end
  uint64_t process = 0;  // the serialized id of the process, unique in the file
  uint64_t thread = 0;
  // The fields of the payload, if it has them.
  std::optional<uint64_t> communicator;
  std::optional<uint64_t> bytes;
  std::optional<int64_t> root;
  std::optional<int64_t> peer;
  std::optional<int64_t> rank;
  std::optional<int64_t> rank_count;
  // A split states the communicator that is split, and the place of the rank among those of its
  // color. `rank` and `rank_count` are then the parent's.
  std::optional<uint64_t> parent;
  std::optional<int64_t> color;
  std::optional<int64_t> key;
};

// Describes a kernel of NCCL, and the call of the host that launched it.
struct NsysKernel {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t stream = 0;  // unique among the streams and devices of the process
  uint64_t process = 0;
  uint64_t launch_thread = 0;
  int64_t launch_ns = 0;  // when the launch began
};

using NsysExport = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

// Opens a database to be read as it is now: nothing is written beside it, it is not locked, and it
// may be removed once it is open. A file that is no database is found when it is read.
NsysExport OpenNsysExport(const std::string& path);

// Passes every NVTX range whose name begins with "nccl" to `on_range`, in the order of starts, then
// every kernel of NCCL whose launch was captured to `on_kernel`, in the order of launches. Returns
// false after an error: the file is not an SQLite database, is damaged, or has no NVTX events.
// `name` is the file in findings. Views and triggers of the database are never executed.
bool ReadNsysExport(const NsysExport& database, const std::string& name,
                    const std::function<void(NsysRange&&)>& on_range,
                    const std::function<void(const NsysKernel&)>& on_kernel,
                    Diagnostics& diagnostics);

}  // namespace railyard
