// SPDX-License-Identifier: GPL-2.0-only
// Finds where a job hung from the dumps of its ranks: the first collective of a group in which some
// ranks wait and which others have not reached. The latter make the call after a computation that
// does not end.
#pragma once

#include <cstdint>
#include <map>
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

struct Hang {
  uint32_t group = 0;
  std::string collective;              // "AllReduce #12 of group \"0\""
  std::vector<uint32_t> waiting;       // global ranks that are in it
  std::vector<uint32_t> late;          // captured ranks that have not reached it
  std::vector<uint32_t> without_dump;  // ranks of the group that were not captured
};

// Finds the hanging collectives and gives the late ranks the call that they did not make. Later
// calls of the group are dropped, because they never ran. Groups in which all ranks have begun the
// call are skipped: the dumps do not say for what they wait.
std::vector<Hang> PlaceHangs(CapturedJob& job, const UnfinishedCalls& unfinished,
                             ImportReport& report);
// Makes ranks without a dump late for the last call of the group as well.
void HoldUncapturedRanks(const std::vector<Hang>& hangs, CapturedJob& job, Trace& trace);

// Returns a scenario that replays `trace_path` (relative to the scenario) until it hangs.
std::string HangScenario(const std::vector<Hang>& hangs, const std::string& trace_path,
                         uint32_t rank_count);

}  // namespace railyard
