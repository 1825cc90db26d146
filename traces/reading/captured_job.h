// SPDX-License-Identifier: GPL-2.0-only
// Holds the calls of each rank as its capture states them, before the calls of different ranks are
// matched. Readers of captures that are made rank by rank fill it; BuildTrace() makes the trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Returns the identity of a call that its capture numbers within its group: `ordinal` counts those
// that share a number, as the calls of a coalesced group of PyTorch do. Two calls are of one such
// group if NumberOfIdentity() is equal.
inline constexpr uint64_t kCallsOfNumberMax = 65'536;
inline uint64_t NumberedIdentity(uint64_t number, uint64_t ordinal) {
  return number * kCallsOfNumberMax + ordinal + 1;
}
inline uint64_t NumberOfIdentity(uint64_t identity) { return (identity - 1) / kCallsOfNumberMax; }

struct CapturedCall {
  // `communicator` is a number that GroupOf returned; `source_file` is an index into
  // ImportReport::files and `source_line` the record's position in it; `after` counts the rank's
  // calls as added; roots and peers are ranks of the group.
  TraceOperation operation;
  uint64_t stated_bytes = 0;  // of the rank's buffer as the file states them, for the report
  // One more than the number of the step, such as PyTorch's profiler counts, in which the rank made
  // it; 0 if none was, or none had begun. Steps of a rank rise.
  uint32_t step = 0;
  // A number that is equal on all ranks of the group for one collective, and unique within a rank;
  // 0 if not stated.
  uint64_t identity = 0;
  // For an AllToAll with stated parts: elements to and from each rank of the group; else empty.
  std::vector<uint64_t> sends = {};
  std::vector<uint64_t> receives = {};
  // An AllToAll whose parts are not stated and cannot be equal. It is dropped on all ranks.
  bool has_unknown_parts = false;
  bool dropped = false;
  bool is_reconstructed = false;  // it has no record
  bool is_unfinished = false;     // a Send or Recv that had not ended when the capture did
};

struct CapturedGroup {
  std::string name;
  uint32_t size = 0;
  std::vector<uint32_t> ranks;  // global; empty if not stated
};

// Counts calls that state a duration which is none.
class WrongDurations {
 public:
  void Count(bool is_wrong) { count_ += is_wrong ? 1 : 0; }
  // Adds a sentence to the report, if there is one.
  void Report(ImportReport& report) const;

 private:
  uint64_t count_ = 0;
};

class CapturedJob {
 public:
  explicit CapturedJob(std::string format) : format_(std::move(format)) {}

  // Returns the number of the group of this name and these members, the same for all ranks. `ranks`
  // may be empty if the capture does not list them: the group is then that of all ranks if it has
  // as many ranks; otherwise its calls are dropped.
  uint32_t GroupOf(const std::string& name, uint32_t size, const std::vector<uint32_t>& ranks);
  // States that the rank was captured, even if it made no call.
  void AddRank(uint32_t rank) { calls_[rank]; }
  // States that the rank's capture begins after its first calls. Its Sends and Recvs are then
  // matched from the last on, because what is missing was before the first.
  void MarkAsWindow(uint32_t rank) { windows_.insert(rank); }
  bool IsWindow(uint32_t rank) const { return windows_.contains(rank); }
  // Returns the lowest rank without a capture, for a file that does not state its rank, and adds a
  // note to `assumed`.
  uint32_t RankByPlace(const std::string& file, ImportReport& report) const;
  // Adds the rank's next call, which has been counted as seen. kCompute keeps a stream busy and is
  // not a call in the report.
  void Add(uint32_t rank, CapturedCall call) { calls_[rank].push_back(std::move(call)); }
  // Returns a dense number for a stream of the rank.
  uint32_t StreamOf(uint32_t rank, uint64_t stream);
  // Records a rank count that the capture states. The largest one counts.
  void StateRankCount(uint32_t rank_count);

  const std::string& format() const { return format_; }
  uint32_t stated_rank_count() const { return stated_rank_count_; }
  std::vector<CapturedGroup>& groups() { return groups_; }
  // Returns the captured calls by global rank; ranks that were not captured have no entry.
  std::map<uint32_t, std::vector<CapturedCall>>& calls() { return calls_; }

 private:
  std::string format_;
  uint32_t stated_rank_count_ = 0;
  std::vector<CapturedGroup> groups_;
  std::map<std::tuple<std::string, uint32_t, std::vector<uint32_t>>, uint32_t> group_of_;
  std::map<uint32_t, std::vector<CapturedCall>> calls_;
  std::set<uint32_t> windows_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> stream_of_;
  std::map<uint32_t, uint32_t> streams_of_rank_;
};

// Matches the calls of the ranks, gives missing ranks the program of those present if that is sound
// and requested, and accounts for every call in `report`: it is imported or dropped. If the calls
// of different ranks do not match, all calls from the first mismatch on are dropped. Returns
// nullopt with findings, including those that `diagnostics` has already, or if nothing is left.
std::optional<Trace> BuildTrace(CapturedJob job, const ImportOptions& options, ImportReport& report,
                                Diagnostics& diagnostics);

}  // namespace railyard
