// SPDX-License-Identifier: GPL-2.0-only
// Defines the records of NCCL and RCCL log lines, one struct per kind. Views point into the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/nccl_log/log_time.h"
#include "traces/trace/trace.h"

namespace railyard {

// Holds HOST:PID:TID [DEV]. DEV is the calling thread's current CUDA device.
struct LogPrefix {
  std::string_view host;
  uint64_t pid = 0;
  uint64_t tid = 0;
  std::optional<uint32_t> device;
  // The host name with the text directly before it if a line break before the prefix was lost; else
  // equal to `host`. If they differ, `host` may lack its first letters.
  std::string_view glued_host;
};

enum class CallDefect : uint8_t {
  kNone,
  kTruncated,
  kUnnamed,
  kUnsupportedKind,
  kUnknownDatatype,
};

// Holds a call as ncclEnqueueCheck prints it. Fields after `name` are only valid without a defect.
struct LogCall {
  std::optional<LogPrefix> prefix;
  CallDefect defect = CallDefect::kNone;
  std::string defect_detail;  // e.g. `no "comm"`
  std::string_view name;      // "AllReduce"; empty up to NCCL 2.3.5
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint64_t op_count = 0;
  uint64_t count = 0;
  Datatype datatype = Datatype::kFloat32;
  uint32_t root = 0;  // for Send and Recv, the peer
  uint64_t communicator = 0;
  uint32_t rank_count = 0;
  uint64_t stream = 0;
  bool same_buffers = false;  // send and receive buffer are the same
  // RCCL only: `globalrank`, which is the rank in the call's communicator (RCCL, enqueue.cc:
  // comm->localRankToRank[comm->localRank]).
  std::optional<uint32_t> rank;
  std::optional<LogTime> time;  // the stamp before the prefix
  bool has_other_time = false;  // a time of day is there, in a format that is not read
  // True if the call is truncated and the text may end with the beginning of the missing field.
  bool ends_with_text = false;
};

// Holds `comm PTR rank I nranks I …`, which is printed while a communicator is made (src/init.cc).
struct LogInit {
  enum class Phase : uint8_t { kStart, kInfo, kComplete };
  LogPrefix prefix;
  Phase phase = Phase::kInfo;
  uint64_t communicator = 0;
  uint32_t rank = 0;
  uint32_t rank_count = 0;
  std::optional<uint32_t> cuda_device;
  std::string_view bus_id;              // of the GPU, "1b000"; empty if not printed
  std::string_view comm_id;             // "0x3f…"; empty if not printed
  std::optional<uint64_t> parent;       // of a communicator from ncclCommSplit
  std::optional<uint64_t> split_count;  // index among the parent's splits; since 2.24
  std::optional<int64_t> color;
};

// Holds `Init timings - API: rank I nranks I …`, which names no communicator.
struct LogInitTimings {
  LogPrefix prefix;
  uint32_t rank = 0;
  uint32_t rank_count = 0;
};

// Holds `comm PTR … - Destroy COMPLETE` or `- Abort COMPLETE`, after which the pointer may be
// reused.
struct LogDestroy {
  LogPrefix prefix;
  uint64_t communicator = 0;
};

// Holds `[NAME: ]BYTES Bytes -> Algo A proto P …`, which rank 0 of a communicator prints per
// operation.
struct LogTuning {
  LogPrefix prefix;
  std::optional<CollectiveKind> kind;  // not printed before 2.23
  uint64_t bytes = 0;
  // Up to 2.23 algorithm and protocol are numbers, and `bytes` is the larger buffer's size; since
  // 2.24 they are names, and `bytes` is count x size.
  bool bytes_are_per_rank = false;
  // Unstated if a symmetric kernel or a copy engine made the call.
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
};

// Holds `Ring CC : prev -> rank -> next`, which every rank prints (GRAPH).
struct LogRing {
  LogPrefix prefix;
  uint32_t channel = 0;
  uint32_t rank = 0;
  uint32_t next = 0;
};

// Holds `Channel CC/TT : r0 r1 …`, which rank 0 prints, unless it is cut off (`...`).
struct LogWholeRing {
  LogPrefix prefix;
  uint32_t channel = 0;
  uint32_t channel_count = 0;
  std::vector<uint32_t> ranks;
};

// Holds one channel of `Trees [c] d0/d1/d2->rank->up [c+1] …`.
struct LogTreePlace {
  LogPrefix prefix;
  uint32_t channel = 0;
  uint32_t rank = 0;
  int32_t parent = 0;  // -1 for none
};

struct LogVersion {
  std::string_view version;  // "2.27.5"
};

using LogRecord = std::variant<LogCall, LogInit, LogInitTimings, LogDestroy, LogTuning, LogRing,
                               LogWholeRing, LogTreePlace, LogVersion>;

}  // namespace railyard
