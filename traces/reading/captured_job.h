// SPDX-License-Identifier: GPL-2.0-only
// The calls of each rank as its capture states them, before those of different ranks are put
// together. Readers of captures that are made rank by rank fill it; BuildTrace does the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

struct CapturedCall {
  // `communicator` is a number that GroupOf gave; `source_file` an index into ImportReport::files,
  // `source_line` the record's place in it; `after` counts the rank's calls as added; roots and
  // peers are ranks of the group.
  TraceOperation operation;
  uint64_t stated_bytes = 0;  // of the rank's buffer, in the file's words, for the report
  // Equal on all ranks of the group for one collective, and for no two of a rank; 0: not stated.
  uint64_t identity = 0;
  // AllToAll whose parts are stated: elements to and from each rank of the group; else empty.
  std::vector<uint64_t> sends = {};
  std::vector<uint64_t> receives = {};
  bool dropped = false;
  bool is_reconstructed = false;  // no record stands for it
};

struct CapturedGroup {
  std::string name;
  uint32_t size = 0;
  std::vector<uint32_t> ranks;  // global; empty: not stated
};

class CapturedJob {
 public:
  explicit CapturedJob(std::string format) : format_(std::move(format)) {}

  // The number of the group of this name and these members, the same whoever asks. `ranks` may be
  // empty where the capture does not list them: the group is then that of all ranks, if it has as
  // many, or its calls are dropped.
  uint32_t GroupOf(const std::string& name, uint32_t size, const std::vector<uint32_t>& ranks);
  // The rank was captured, also where it made no call.
  void AddRank(uint32_t rank) { calls_[rank]; }
  // The rank's next call, which has been counted as seen. kCompute keeps a stream busy and is no
  // call of the report.
  void Add(uint32_t rank, CapturedCall call) { calls_[rank].push_back(std::move(call)); }
  // A dense number for a stream of the rank.
  uint32_t StreamOf(uint32_t rank, uint64_t stream);
  // The capture says how many ranks the job has. The largest statement counts.
  void StateRankCount(uint32_t rank_count);

  const std::string& format() const { return format_; }
  uint32_t stated_rank_count() const { return stated_rank_count_; }
  std::vector<CapturedGroup>& groups() { return groups_; }
  // By global rank; those that were captured.
  std::map<uint32_t, std::vector<CapturedCall>>& calls() { return calls_; }

 private:
  std::string format_;
  uint32_t stated_rank_count_ = 0;
  std::vector<CapturedGroup> groups_;
  std::map<std::tuple<std::string, uint32_t, std::vector<uint32_t>>, uint32_t> group_of_;
  std::map<uint32_t, std::vector<CapturedCall>> calls_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> stream_of_;
  std::map<uint32_t, uint32_t> streams_of_rank_;
};

// Matches the calls of the ranks, gives missing ranks the program of those present where that is
// sound and wanted, and accounts for every call in `report`: it is imported or dropped. Calls of
// ranks that do not fit together are dropped from the first that does not. nullopt with findings,
// also with those that `diagnostics` has already, or if nothing is left.
std::optional<Trace> BuildTrace(CapturedJob job, const ImportOptions& options, ImportReport& report,
                                Diagnostics& diagnostics);

}  // namespace railyard
