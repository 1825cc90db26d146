// SPDX-License-Identifier: GPL-2.0-only
// Finds where a job hung from the dumps of its ranks: the first collective of a group in which some
// ranks wait and which others have not reached, or where they make another call. The latter get the
// call after a computation that does not end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// A computation that is longer than any watchdog's time-out.
inline constexpr int64_t kHangPs = int64_t{86'400} * 1'000'000'000'000;

struct UnfinishedCall {
  bool has_begun = false;  // on the GPU; else only enqueued
};
// Holds calls by group and identity, then by rank.
using UnfinishedCalls = std::map<std::pair<uint32_t, uint64_t>, std::map<uint32_t, UnfinishedCall>>;

// Holds Sends and Recvs by rank and by place among the rank's calls.
using UnfinishedMessages = std::map<std::pair<uint32_t, size_t>, UnfinishedCall>;

struct UnfinishedWork {
  UnfinishedCalls collectives;
  UnfinishedMessages messages;
  std::set<uint32_t> whole_dumps;  // ranks whose dumps have their first call
};

struct Hang {
  uint32_t group = 0;
  std::string collective;         // "AllReduce of 64 float32 in group \"0\"", or a Send or Recv
  std::vector<uint32_t> waiting;  // global ranks that are in it
  std::vector<uint32_t> late;     // captured ranks that have not come to it
  std::vector<uint32_t> without_dump;  // ranks of the group that were not captured
  // "rank 3 makes AllGather of 64 float32": what late ranks do instead; empty: nothing.
  std::string other_calls = {};
  // A run lets a Send leave before its Recv has come, if its bytes fit NCCL's buffers.
  bool is_of_send = false;
};

struct HangSearch {
  std::vector<Hang> hangs;
  std::vector<std::string> unplaced;  // hangs that no trace can have, each as an error
};

// Finds the hanging collectives and messages, and gives the late ranks the call that they did not
// make, in place of another that they made. Later calls of the group are dropped, because they
// never ran. Groups in which all ranks have begun the same call are skipped: the dumps do not say
// what they wait for.
HangSearch PlaceHangs(CapturedJob& job, const UnfinishedWork& unfinished, ImportReport& report);
// Returns "AllReduce of 64 float32 in group "0": ranks 0 wait for ranks 1, which have not come to
// it." and the like.
std::string Sentence(const Hang& hang);
// Makes ranks without a dump late for the last call of the group as well.
void HoldUncapturedRanks(const std::vector<Hang>& hangs, CapturedJob& job, Trace& trace);

// Returns a scenario that replays `trace_path` (relative to the scenario) until it hangs.
std::string HangScenario(const std::vector<Hang>& hangs, const std::string& trace_path,
                         uint32_t rank_count);

}  // namespace railyard
