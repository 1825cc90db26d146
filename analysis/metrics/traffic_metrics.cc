// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/traffic_metrics.h"

#include <cmath>
#include <utility>
#include <vector>

#include "analysis/metrics/entropy.h"
#include "analysis/metrics/run_metrics.h"

namespace railyard {
namespace {

double PairEntropyBits(const RunResult& result) {
  EntropySum sum;
  for (const PairResult& pair : result.pairs) sum.Add(static_cast<double>(pair.payload_bytes));
  return sum.Bits();
}

std::optional<SizeStatistics> SummarizeSizes(const std::vector<MessageSizeResult>& sizes) {
  if (sizes.empty()) return std::nullopt;
  SizeStatistics statistics{.min = sizes.front().bytes, .max = sizes.back().bytes};
  double bytes = 0;
  for (const MessageSizeResult& size : sizes) {
    statistics.count += size.count;
    bytes += static_cast<double>(size.bytes) * static_cast<double>(size.count);
  }
  statistics.mean = bytes / static_cast<double>(statistics.count);
  const auto percentile = [&](uint32_t permille) {
    const size_t index = NearestRankIndex(statistics.count, permille);
    uint64_t passed = 0;
    for (const MessageSizeResult& size : sizes) {
      passed += size.count;
      if (index < passed) return size.bytes;
    }
    return statistics.max;
  };
  statistics.p50 = percentile(500);
  statistics.p90 = percentile(900);
  statistics.p99 = percentile(990);
  statistics.p999 = percentile(999);
  return statistics;
}

}  // namespace

TrafficFigures TrafficOf(const RunResult& result) {
  TrafficFigures figures;
  figures.pair_entropy_bits = PairEntropyBits(result);
  const uint64_t possible = CountPairs(result).possible;
  if (possible > 1) {
    figures.pair_entropy_share =
        figures.pair_entropy_bits / std::log2(static_cast<double>(possible));
  }
  std::vector<double> entropies;
  std::vector<int64_t> periods_ps;
  std::vector<double> duties;
  for (const LinkResult& link : result.links) {
    if (link.flows == 0) continue;
    ++figures.links_used;
    entropies.push_back(link.flow_entropy_bits);
    if (link.load.period_ps) periods_ps.push_back(*link.load.period_ps);
    if (link.load.duty) duties.push_back(*link.load.duty);
  }
  figures.flow_entropy_bits = SummarizeStretches(std::move(entropies));
  figures.link_periods = SummarizeDurations(std::move(periods_ps));
  figures.link_duty = SummarizeStretches(std::move(duties));
  figures.message_sizes = SummarizeSizes(result.traffic.message_sizes);
  figures.iterations = result.traffic.iterations.size();
  const auto summarize = [&](std::optional<double> IterationResult::*figure) {
    std::vector<double> values;
    for (const IterationResult& iteration : result.traffic.iterations) {
      if (iteration.*figure) values.push_back(*(iteration.*figure));
    }
    return SummarizeStretches(std::move(values));
  };
  figures.drift = summarize(&IterationResult::drift);
  figures.all_to_all_drift = summarize(&IterationResult::all_to_all_drift);
  figures.all_to_all_imbalance = summarize(&IterationResult::all_to_all_imbalance);
  return figures;
}

}  // namespace railyard
