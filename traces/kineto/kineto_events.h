// SPDX-License-Identifier: GPL-2.0-only
// Reads one profiler file as a stream of events and keeps only those about collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/kineto/kineto_time.h"
#include "traces/pytorch/comms_record.h"
#include "traces/reading/input_stream.h"

namespace railyard {

// Describes a kernel of NCCL or RCCL.
struct KinetoKernel {
  uint64_t line = 0;
  std::string name;
  std::optional<EventTime> start;
  int64_t duration_ps = 0;           // 0: not stated
  bool has_shortened_parts = false;  // the parts to and from ranks are not all listed
  bool duration_is_none = false;     // stated, but NaN, infinite, negative or beyond 100 days
  uint64_t device_stream = 0;        // device and stream in one
  uint64_t correlation = 0;
  uint64_t external_id = 0;  // 0 for none
  uint32_t record = 0;       // one more than its index in KinetoFile::records; 0 for none
  uint32_t sequence = 0;     // one more than the number of its collective in its group; 0 for none
  uint32_t batch = 0;        // one more than its index in KinetoFile::batches; 0 for none
};

// Returns the start of a kernel, which it must have, and its duration later.
EventTime EndOf(const KinetoKernel& kernel);

// Describes a Send or Recv as the host makes it or, if `record` is 0, the title of a work, which
// may be a mark between them (MessageBatches).
struct KinetoHostEvent {
  EventTime start = {};
  uint64_t external_id = 0;  // 0 for none
  uint32_t record = 0;       // one more than its index in KinetoFile::records
  std::optional<uint64_t> sequence = {};
  std::string title = {};
};

// Describes what the host states of the call that a kernel runs, as KinetoKernel does.
struct KinetoLaunch {
  uint32_t record = 0;
  uint32_t sequence = 0;
  std::optional<EventTime> start = {};  // nullopt too if several records have the external id
};

// Describes a step of the profiler, which the training loop ends by its `step()`.
struct KinetoStep {
  uint64_t number = 0;
  EventTime start = {};
};

struct KinetoFile {
  std::optional<uint32_t> rank;
  uint32_t world_size = 0;  // 0 if not stated
  std::string nccl_version;
  // The members of process groups by name; empty for all ranks.
  std::map<std::string, std::vector<uint32_t>> group_ranks;
  std::vector<KinetoKernel> kernels;
  // The records; equal ones are stored once, because a job repeats the same calls.
  std::vector<CommsRecord> records;
  std::unordered_map<uint64_t, KinetoLaunch> launches;  // by external id; each has a record
  std::vector<KinetoHostEvent> host_events;
  std::vector<KinetoStep> steps;  // as the file has them: a step may have several events
  // The records of Sends and Recvs that one kernel runs, by the numbers that KinetoKernel has.
  std::vector<std::vector<uint32_t>> batches;
  uint64_t host_calls = 0;   // records of calls as the host makes them
  int64_t base_time_ns = 0;  // since 1970, to which times of events are relative; 0: not stated
  std::optional<EventTime> first_kernel;  // of any kind: when the GPU began
};

// Reads the file to its end. Returns false with a finding if it is not JSON; `file` then has
// everything before the error.
bool ReadKinetoFile(InputStream& stream, KinetoFile& file, Diagnostics& diagnostics);

}  // namespace railyard
