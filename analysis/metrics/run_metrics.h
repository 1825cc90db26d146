// SPDX-License-Identifier: GPL-2.0-only
// Derives from a RunResult the figures that all reports share, each defined once. docs/results.md
// explains them to the reader of the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metrics/statistics.h"
#include "analysis/result/run_result.h"

namespace railyard {

// Returns "COMPLETED", "JOB_ABORTED", "STALLED", "INTERRUPTED", "TIME_ENDED" or "RUNNING".
std::string_view RunStatusName(RunStatus status);

// Returns part / whole; 0 if `whole` is 0.
double Share(uint64_t part, uint64_t whole);

// Returns the share of all packet hops, control packets included, that took a single event.
double ShortFormShare(const RunResult& result);

// These return figures of one collective; nullopt if it did not complete or the divisor is 0.
std::optional<double> BusbwGBps(const CollectiveResult& collective);  // nccl-tests'; 10^9 bytes/s
std::optional<double> Slowdown(const CollectiveResult& collective);   // duration over bound

// Returns the duration in this run over the duration in the paired fault-free run. A run without
// faults is its own fault-free run, so its stretch is exactly 1. nullopt if a run with faults had
// no paired run, or if the collective did not complete in both.
std::optional<double> Stretch(const RunResult& result, const CollectiveResult& collective);

// Returns the simulated time from its last rank's start to its end over the duration that was
// measured where the job was captured; nullopt if nothing was measured or it did not complete.
std::optional<double> MeasuredRatio(const CollectiveResult& collective);

// Summarizes a group of collectives.
struct CollectiveTotals {
  std::string kind;  // empty for all kinds together
  uint64_t count = 0;
  uint64_t bytes = 0;  // summed nccl-tests' sizes
  // Statistics of the completed collectives; nullopt if there is none.
  std::optional<DurationStatistics> durations;
  std::optional<StretchStatistics> stretches;
  std::optional<RateStatistics> busbw_GBps;
};
CollectiveTotals TotalOfCollectives(const RunResult& result);
// Returns the totals in the order in which the kinds first occur.
std::vector<CollectiveTotals> TotalsByKind(const RunResult& result);

// Summarizes the collectives of one kind, size and number of ranks whose durations were measured.
struct MeasuredTotals {
  std::string_view kind;
  uint64_t bytes = 0;  // nccl-tests' size of each
  uint32_t rank_count = 0;
  uint64_t count = 0;
  int64_t measured_p50_ps = 0;
  int64_t simulated_p50_ps = 0;  // from the last rank's start
  RateStatistics ratios;         // MeasuredRatio
};
// Returns the totals by kind in the order of their names, then by size and ranks.
std::vector<MeasuredTotals> TotalsOfMeasured(const RunResult& result);
// Returns the MeasuredRatio of all collectives that have one.
std::optional<RateStatistics> MeasuredRatios(const RunResult& result);

struct TierTotals {
  std::string tier;
  uint64_t links = 0;  // directed
  uint64_t payload_bytes = 0;
  uint64_t header_bytes = 0;
  uint64_t retransmitted_bytes = 0;
  double payload_share = 0;  // of the payload over all tiers
};
// Returns the totals of the fabric's tiers, in the order in which they first occur among its links.
std::vector<TierTotals> TotalsByTier(const RunResult& result);

struct PairCounts {
  uint64_t active = 0;    // ordered pairs of GPUs with payload between them
  uint64_t possible = 0;  // g(g-1)
};
PairCounts CountPairs(const RunResult& result);

// Counts the bytes that all GPUs sent to, and received from, one kind of switches for one
// in-network operation.
struct InNetworkTotals {
  std::string_view switches;
  std::string_view operation;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};
// Returns the totals in the order of the rows; empty if no switch reduced or multicast anything.
std::vector<InNetworkTotals> TotalsInNetwork(const RunResult& result);

// Summarizes the stretches of the collectives that ended before a fault began, that overlapped with
// it, and that began after it had ended for the last time. A member is nullopt if no such
// collective has a stretch, or the fault never began.
struct StretchesAroundFault {
  std::optional<StretchStatistics> before;
  std::optional<StretchStatistics> during;
  std::optional<StretchStatistics> after;
};
StretchesAroundFault StretchesAround(const RunResult& result, const FaultResult& fault);

// Attributes the time that collectives took longer to faults, by cause; the parts sum to all the
// time added since the first fault began. Time-outs and retransmissions are attributed to the
// faults by which the collective lost packets, and slow peers to the stragglers that were active
// meanwhile. If there are no such faults, and for all other causes, the time is attributed to the
// faults that were active meanwhile or caused the collective's losses, else to the fault that ended
// last. Several faults share a part equally. The result is empty without a paired run.
std::vector<AddedTime> AddedByFaults(const RunResult& result);

// Returns the time from the fault's first begin to the end of the last collective whose bus
// bandwidth, measured from its last rank's start on, was below 99 % of the same collective's in the
// fault-free run; 0 if there was none. nullopt without a paired run, and if no later collective
// reached full bandwidth again.
std::optional<int64_t> TimeToFullBusbwPs(const RunResult& result, const FaultResult& fault);

// Returns the estimate over the simulated time of the fault-free job, minus 1; nullopt without an
// estimate or a completed fault-free run.
std::optional<double> EstimateDifference(const RunResult& result);
// Returns the sum of the simulated iterations of the estimate's rank.
TimeBreakdown SimulatedParts(const EstimateResult& estimate);

}  // namespace railyard
