// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/run_metrics.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/units/units.h"

namespace railyard {

std::string_view RunStatusName(RunStatus status) {
  switch (status) {
    case RunStatus::kCompleted:
      return "COMPLETED";
    case RunStatus::kJobAborted:
      return "JOB_ABORTED";
    case RunStatus::kStalled:
      return "STALLED";
    case RunStatus::kInterrupted:
      return "INTERRUPTED";
    case RunStatus::kTimeEnded:
      return "TIME_ENDED";
    case RunStatus::kRunning:
      return "RUNNING";
  }
  return "UNKNOWN";
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double ShortFormShare(const RunResult& result) {
  return Share(result.short_form_hops, result.packet_hops + result.control_hops);
}

std::optional<double> BusbwGBps(const CollectiveResult& collective) {
  if (!collective.completed || collective.duration_ps() == 0) return std::nullopt;
  constexpr double kGBpsPerBytePerPs = 1000;
  return static_cast<double>(collective.bytes) * collective.busbw_factor * kGBpsPerBytePerPs /
         static_cast<double>(collective.duration_ps());
}

std::optional<double> Slowdown(const CollectiveResult& collective) {
  if (!collective.completed || collective.bound_ps == 0) return std::nullopt;
  return static_cast<double>(collective.duration_ps()) / static_cast<double>(collective.bound_ps);
}

std::optional<double> Stretch(const RunResult& result, const CollectiveResult& collective) {
  if (!collective.completed) return std::nullopt;
  if (!result.has_baseline) {
    return result.faults.empty() ? std::optional<double>(1) : std::nullopt;
  }
  if (collective.duration_ps() == collective.baseline_duration_ps) return 1;
  if (collective.baseline_duration_ps == 0) return std::nullopt;
  return static_cast<double>(collective.duration_ps()) /
         static_cast<double>(collective.baseline_duration_ps);
}

std::optional<double> MeasuredRatio(const CollectiveResult& collective) {
  if (!collective.completed || collective.measured_ps == 0) return std::nullopt;
  return static_cast<double>(collective.last_end_ps - collective.last_start_ps) /
         static_cast<double>(collective.measured_ps);
}

namespace {

// The values from which the statistics of a group are computed.
struct Values {
  CollectiveTotals totals;
  std::vector<int64_t> durations_ps;
  std::vector<double> stretches;
  std::vector<double> busbw_GBps;

  void Add(const RunResult& result, const CollectiveResult& collective) {
    ++totals.count;
    totals.bytes += collective.bytes;
    if (collective.completed) durations_ps.push_back(collective.duration_ps());
    if (const auto stretch = Stretch(result, collective)) stretches.push_back(*stretch);
    if (const auto busbw = BusbwGBps(collective)) busbw_GBps.push_back(*busbw);
  }
  CollectiveTotals Finish() {
    totals.durations = SummarizeDurations(std::move(durations_ps));
    totals.stretches = SummarizeStretches(std::move(stretches));
    totals.busbw_GBps = SummarizeRates(std::move(busbw_GBps));
    return std::move(totals);
  }
};

}  // namespace

CollectiveTotals TotalOfCollectives(const RunResult& result) {
  Values values;
  for (const CollectiveResult& collective : result.collectives) values.Add(result, collective);
  return values.Finish();
}

std::vector<CollectiveTotals> TotalsByKind(const RunResult& result) {
  std::vector<Values> kinds;
  std::map<std::string_view, size_t> index_of_kind;
  for (const CollectiveResult& collective : result.collectives) {
    const auto [entry, is_new] = index_of_kind.try_emplace(collective.kind, kinds.size());
    if (is_new) kinds.emplace_back().totals.kind = collective.kind;
    kinds[entry->second].Add(result, collective);
  }
  std::vector<CollectiveTotals> totals;
  totals.reserve(kinds.size());
  for (Values& values : kinds) totals.push_back(values.Finish());
  return totals;
}

std::vector<MeasuredTotals> TotalsOfMeasured(const RunResult& result) {
  std::map<std::tuple<std::string_view, uint64_t, uint32_t>, std::vector<const CollectiveResult*>>
      alike;
  for (const CollectiveResult& collective : result.collectives) {
    if (!MeasuredRatio(collective)) continue;
    alike[{collective.kind, collective.bytes, collective.rank_count}].push_back(&collective);
  }
  std::vector<MeasuredTotals> totals;
  for (const auto& [key, collectives] : alike) {
    std::vector<int64_t> measured_ps;
    std::vector<int64_t> simulated_ps;
    std::vector<double> ratios;
    for (const CollectiveResult* const collective : collectives) {
      measured_ps.push_back(collective->measured_ps);
      simulated_ps.push_back(collective->last_end_ps - collective->last_start_ps);
      ratios.push_back(*MeasuredRatio(*collective));
    }
    totals.push_back({.kind = std::get<0>(key),
                      .bytes = std::get<1>(key),
                      .rank_count = std::get<2>(key),
                      .count = collectives.size(),
                      .measured_p50_ps = SummarizeDurations(std::move(measured_ps))->p50_ps,
                      .simulated_p50_ps = SummarizeDurations(std::move(simulated_ps))->p50_ps,
                      .ratios = *SummarizeRates(std::move(ratios))});
  }
  return totals;
}

std::optional<RateStatistics> MeasuredRatios(const RunResult& result) {
  std::vector<double> ratios;
  for (const CollectiveResult& collective : result.collectives) {
    if (const auto ratio = MeasuredRatio(collective)) ratios.push_back(*ratio);
  }
  return SummarizeRates(std::move(ratios));
}

std::vector<TierTotals> TotalsByTier(const RunResult& result) {
  std::vector<TierTotals> tiers;
  uint64_t payload_bytes = 0;
  for (const LinkResult& link : result.links) {
    auto tier = std::find_if(tiers.begin(), tiers.end(),
                             [&](const TierTotals& known) { return known.tier == link.tier; });
    if (tier == tiers.end())
      tier = tiers.insert(tiers.end(), TierTotals{.tier = std::string(link.tier)});
    ++tier->links;
    tier->payload_bytes += link.payload_bytes;
    tier->header_bytes += link.header_bytes;
    tier->retransmitted_bytes += link.retransmitted_bytes;
    payload_bytes += link.payload_bytes;
  }
  for (TierTotals& tier : tiers) tier.payload_share = Share(tier.payload_bytes, payload_bytes);
  return tiers;
}

PairCounts CountPairs(const RunResult& result) {
  PairCounts counts;
  counts.active = static_cast<uint64_t>(
      std::count_if(result.pairs.begin(), result.pairs.end(),
                    [](const PairResult& pair) { return pair.payload_bytes > 0; }));
  const uint64_t gpus = result.gpu_count;
  counts.possible = gpus < 2 ? 0 : gpus * (gpus - 1);
  return counts;
}

std::vector<InNetworkTotals> TotalsInNetwork(const RunResult& result) {
  std::vector<InNetworkTotals> totals;
  for (const InNetworkResult& row : result.in_network) {
    auto total = std::find_if(totals.begin(), totals.end(), [&](const InNetworkTotals& known) {
      return known.switches == row.switches && known.operation == row.operation;
    });
    if (total == totals.end()) {
      total = totals.insert(total, {.switches = row.switches, .operation = row.operation});
    }
    total->sent_bytes += row.sent_bytes;
    total->received_bytes += row.received_bytes;
  }
  return totals;
}

StretchesAroundFault StretchesAround(const RunResult& result, const FaultResult& fault) {
  if (fault.begins == 0) return {};
  std::vector<double> before;
  std::vector<double> during;
  std::vector<double> after;
  for (const CollectiveResult& collective : result.collectives) {
    const auto stretch = Stretch(result, collective);
    if (!stretch) continue;
    const bool is_before = collective.last_end_ps < fault.from_ps;
    const bool is_after = fault.until_ps != kNeverPs && collective.first_start_ps >= fault.until_ps;
    (is_before ? before : is_after ? after : during).push_back(*stretch);
  }
  return {.before = SummarizeStretches(std::move(before)),
          .during = SummarizeStretches(std::move(during)),
          .after = SummarizeStretches(std::move(after))};
}

namespace {

using FaultIndices = std::vector<size_t>;

// The faults among which a collective's added time is shared.
class Causers {
 public:
  Causers(const RunResult& result, size_t collective) {
    const CollectiveResult& times = result.collectives[collective];
    int64_t last_until_ps = -1;
    for (size_t i = 0; i < result.faults.size(); ++i) {
      const FaultResult& fault = result.faults[i];
      if (fault.from_ps == kNeverPs || fault.from_ps > times.last_end_ps) continue;
      const bool is_hit = std::binary_search(fault.collectives.begin(), fault.collectives.end(),
                                             static_cast<uint32_t>(collective));
      const bool holds = fault.until_ps > times.first_start_ps;  // or permanent
      if (is_hit) lost_.push_back(i);
      if (holds && fault.kind == "STRAGGLER") slow_.push_back(i);
      if (is_hit || holds) any_.push_back(i);
      if (fault.until_ps > last_until_ps) last_.clear();
      if (fault.until_ps >= last_until_ps) {
        last_until_ps = fault.until_ps;
        last_.push_back(i);
      }
    }
  }

  const FaultIndices& Of(int64_t AddedTime::*part) const {
    const bool is_repetition =
        part == &AddedTime::timeout_ps || part == &AddedTime::retransmission_ps;
    if (is_repetition && !lost_.empty()) return lost_;
    if (part == &AddedTime::slow_peer_ps && !slow_.empty()) return slow_;
    return any_.empty() ? last_ : any_;
  }

 private:
  FaultIndices lost_;
  FaultIndices slow_;
  FaultIndices any_;
  FaultIndices last_;  // those that ended last; none before the first fault
};

}  // namespace

std::vector<AddedTime> AddedByFaults(const RunResult& result) {
  if (!result.has_baseline) return {};
  std::vector<AddedTime> sums(result.faults.size());
  for (size_t i = 0; i < result.collectives.size(); ++i) {
    const CollectiveResult& collective = result.collectives[i];
    if (!collective.completed || collective.baseline_duration_ps == 0) continue;
    const Causers causers(result, i);
    for (int64_t AddedTime::*const part :
         {&AddedTime::queueing_ps, &AddedTime::retransmission_ps, &AddedTime::timeout_ps,
          &AddedTime::rerouting_ps, &AddedTime::slow_peer_ps, &AddedTime::other_ps}) {
      const FaultIndices& faults = causers.Of(part);
      int64_t left_ps = collective.added.*part;
      for (size_t k = 0; k < faults.size(); ++k) {
        const int64_t share_ps = left_ps / static_cast<int64_t>(faults.size() - k);
        sums[faults[k]].*part += share_ps;
        left_ps -= share_ps;
      }
    }
  }
  return sums;
}

std::optional<int64_t> TimeToFullBusbwPs(const RunResult& result, const FaultResult& fault) {
  constexpr double kFullShare = 0.99;
  if (!result.has_baseline || fault.begins == 0) return std::nullopt;
  int64_t last_slow_end_ps = fault.from_ps;
  int64_t last_full_start_ps = -1;
  for (const CollectiveResult& collective : result.collectives) {
    if (collective.baseline_duration_ps == 0) continue;
    if (!collective.completed) {
      // It ends in the fault-free run, and began before the fault was over.
      if (collective.first_start_ps > 0 && collective.first_start_ps < fault.until_ps) {
        return std::nullopt;
      }
      continue;
    }
    if (collective.last_end_ps < fault.from_ps) continue;
    const auto took_ps = static_cast<double>(collective.duration_ps() - collective.wait_ps());
    const int64_t usual_ps = collective.baseline_duration_ps - collective.baseline_wait_ps;
    if (took_ps * kFullShare > static_cast<double>(usual_ps)) {
      last_slow_end_ps = std::max(last_slow_end_ps, collective.last_end_ps);
    } else {
      last_full_start_ps = std::max(last_full_start_ps, collective.first_start_ps);
    }
  }
  if (last_slow_end_ps == fault.from_ps) return 0;
  if (last_full_start_ps < last_slow_end_ps) return std::nullopt;
  return last_slow_end_ps - fault.from_ps;
}

TimeBreakdown SimulatedParts(const EstimateResult& estimate) {
  TimeBreakdown sum;
  for (const TimeBreakdown& iteration : estimate.simulated) sum += iteration;
  return sum;
}

std::optional<double> EstimateDifference(const RunResult& result) {
  const bool is_clean = result.faults.empty() && result.status == RunStatus::kCompleted;
  const int64_t simulated_ps = result.has_baseline ? result.baseline_simulated_time_ps
                               : is_clean          ? result.simulated_time_ps
                                                   : 0;
  if (!result.estimate || simulated_ps <= 0) return std::nullopt;
  return static_cast<double>(result.estimate->parts.total_ps()) /
             static_cast<double>(simulated_ps) -
         1;
}

}  // namespace railyard
