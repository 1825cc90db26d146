// SPDX-License-Identifier: GPL-2.0-only
// The figures every report derives from a RunResult, each defined once. docs/results.md explains
// them to the reader of the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metrics/statistics.h"
#include "analysis/result/run_result.h"

namespace railyard {

// "COMPLETED", "JOB_ABORTED", "STALLED", "INTERRUPTED", "TIME_ENDED"
std::string_view RunStatusName(RunStatus status);

// 0 where `whole` is 0.
double Share(uint64_t part, uint64_t whole);

// Hops of packets, control packets included, that took one event each, as a share of all.
double ShortFormShare(const RunResult& result);

// Figures of one collective; nullopt where it did not complete or the divisor is 0.
std::optional<double> BusbwGBps(const CollectiveResult& collective);  // nccl-tests'; 10^9 bytes/s
std::optional<double> Slowdown(const CollectiveResult& collective);   // duration over bound

// Duration in this run over duration in the paired fault-free run. A run without faults is its own
// fault-free run: exactly 1. nullopt where a run with faults had no paired run, or where the
// collective did not complete in both.
std::optional<double> Stretch(const RunResult& result, const CollectiveResult& collective);

// A group of collectives.
struct CollectiveTotals {
  std::string kind;  // empty: every kind
  uint64_t count = 0;
  uint64_t bytes = 0;  // summed nccl-tests' sizes
  // Of the completed ones; nullopt where there is none.
  std::optional<DurationStatistics> durations;
  std::optional<StretchStatistics> stretches;
  std::optional<RateStatistics> busbw_GBps;
};
CollectiveTotals TotalOfCollectives(const RunResult& result);
// In the order in which the kinds first occur.
std::vector<CollectiveTotals> TotalsByKind(const RunResult& result);

struct TierTotals {
  std::string tier;
  uint64_t links = 0;  // directed
  uint64_t payload_bytes = 0;
  uint64_t header_bytes = 0;
  uint64_t retransmitted_bytes = 0;
  double payload_share = 0;  // of the payload over all tiers
};
// The tiers the fabric has, in the order in which they first occur among its links.
std::vector<TierTotals> TotalsByTier(const RunResult& result);

struct PairCounts {
  uint64_t active = 0;    // ordered pairs of GPUs with payload between them
  uint64_t possible = 0;  // g(g-1)
};
PairCounts CountPairs(const RunResult& result);

// What all GPUs gave to, and got from, one kind of switches that did one operation.
struct InNetworkTotals {
  std::string_view switches;
  std::string_view operation;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};
// In the order of the rows; empty where no switch reduced or multicast anything.
std::vector<InNetworkTotals> TotalsInNetwork(const RunResult& result);

// Stretches of the collectives that were over before a fault began, that were under way while it
// held, at least for a moment, and that began when it had ended for the last time. nullopt: there
// are none with a stretch, or the fault never began.
struct StretchesAroundFault {
  std::optional<StretchStatistics> before;
  std::optional<StretchStatistics> during;
  std::optional<StretchStatistics> after;
};
StretchesAroundFault StretchesAround(const RunResult& result, const FaultResult& fault);

// What collectives took longer, summed by cause, for each fault; together all that they took longer
// since the first fault began. Time-outs and repetition go to the faults to which a collective lost
// packets, slow peers to the stragglers that held meanwhile; where there are none, and for the
// rest, to the faults that held meanwhile or to which it lost packets, or else to the one that
// ended last. Several share a part equally. Empty without a paired run.
std::vector<AddedTime> AddedByFaults(const RunResult& result);

// From its first begin to the end of the last collective whose bus bandwidth, taken from its last
// rank's start on, was less than 99 % of the same collective's in the fault-free run; 0: there was
// none. nullopt without a paired run, and
// where no collective began after that one and was as fast again.
std::optional<int64_t> TimeToFullBusbwPs(const RunResult& result, const FaultResult& fault);

// The estimate over the simulated time of the fault-free job, less 1; nullopt where there is no
// estimate, or no completed run without faults.
std::optional<double> EstimateDifference(const RunResult& result);
// The simulated iterations of the estimate's rank together.
TimeBreakdown SimulatedParts(const EstimateResult& estimate);

}  // namespace railyard
