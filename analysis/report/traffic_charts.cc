// SPDX-License-Identifier: GPL-2.0-only
// Makes charts of the traffic between pairs and over links.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analysis/report/chart.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

// Blocks of so many GPUs make a matrix of all pairs small enough.
int64_t BlockOf(int64_t gpus, int64_t pairs) {
  int64_t block = 1;
  while (pairs / (block * block) > static_cast<int64_t>(kChartPointsMax) && block < gpus)
    block *= 2;
  return block;
}

void AppendPairs(const ResultStore& store, std::vector<Chart>& charts) {
  const int64_t pairs = store.Count("SELECT COUNT(*) FROM pairs WHERE payload_bytes > 0");
  if (pairs == 0) return;
  const int64_t block = BlockOf(store.Count("SELECT value FROM run WHERE key = 'gpus'"), pairs);
  Chart chart{.id = "pairs",
              .title = "Who sent to whom",
              .caption =
                  "Payload from each GPU to each other, each byte once, on a logarithmic "
                  "scale. Lines separate servers."};
  if (block > 1) {
    chart.note = fmt::format("{} pairs: each cell is the sum over {} by {} GPUs.",
                             CountText(static_cast<uint64_t>(pairs)), block, block);
  }
  chart.tables.push_back(TableOf(
      store, "pairs",
      fmt::format("SELECT source_gpu / {0} * {0} AS source_gpu, destination_gpu / {0} * {0} AS "
                  "destination_gpu, tiers_crossed, SUM(payload_bytes) AS payload_bytes FROM pairs "
                  "WHERE payload_bytes > 0 GROUP BY 1, 2, 3",
                  block)));
  charts.push_back(std::move(chart));
}

// Iterations of all jobs, each a matrix by kind. Where there are more cells than can be drawn,
// every second, fourth, … iteration is, whole.
void AppendIterations(const ResultStore& store, std::vector<Chart>& charts) {
  const int64_t iterations =
      store.Count("SELECT COUNT(*) FROM (SELECT 1 FROM iteration_pairs GROUP BY job, iteration)");
  if (iterations < 2) return;
  const int64_t gpus = store.Count("SELECT value FROM run WHERE key = 'gpus'");
  const int64_t cells = store.Count(
      "SELECT COUNT(*) FROM (SELECT 1 FROM iteration_pairs GROUP BY job, iteration, kind, "
      "source_gpu, destination_gpu)");
  const int64_t block = BlockOf(gpus, cells / iterations);
  int64_t every = 1;
  while (cells / (block * block * every) > static_cast<int64_t>(2 * kChartPointsMax)) every *= 2;
  Chart chart{.id = "iteration_pairs",
              .title = "Who sent to whom, iteration by iteration",
              .caption =
                  "The same matrix for one iteration at a time: the slider shows how traffic "
                  "drifts, of experts' exchanges above all."};
  if (every > 1) chart.note = fmt::format("One iteration in {} is drawn.", every);
  if (block > 1) {
    chart.note += fmt::format("{}Each cell is the sum over {} by {} GPUs.",
                              chart.note.empty() ? "" : " ", block, block);
  }
  chart.tables.push_back(TableOf(
      store, "iteration_pairs",
      fmt::format("SELECT job, iteration, kind, source_gpu / {0} * {0} AS source_gpu, "
                  "destination_gpu / {0} * {0} AS destination_gpu, SUM(payload_bytes) AS "
                  "payload_bytes FROM iteration_pairs WHERE (iteration - 1) % {1} = 0 GROUP BY 1, "
                  "2, 3, 4, 5",
                  block, every)));
  if (chart.tables.back().rows.empty()) return;
  // For a picture that does not move: the last iteration of the first job, of all kinds.
  chart.tables.push_back(TableOf(
      store, "iteration_pairs_last",
      fmt::format(
          "WITH first_job AS (SELECT job, MAX(iteration) AS last FROM iteration_pairs WHERE "
          "job = (SELECT job FROM iteration_pairs LIMIT 1)) SELECT source_gpu / {0} * {0} "
          "AS source_gpu, destination_gpu / {0} * {0} AS destination_gpu, "
          "SUM(payload_bytes) AS payload_bytes FROM iteration_pairs JOIN first_job USING "
          "(job) WHERE iteration = last GROUP BY 1, 2",
          block)));
  charts.push_back(std::move(chart));
}

void AppendTiers(const ResultStore& store, std::vector<Chart>& charts) {
  Chart chart{.id = "tiers",
              .title = "Bytes per tier",
              .caption =
                  "Counted once per link crossed: payload, headers and control packets, and "
                  "payload that was sent again."};
  chart.tables.push_back(
      TableOf(store, "tiers",
              "SELECT tier, COUNT(*) AS links, SUM(payload_bytes) AS payload_bytes, "
              "SUM(header_bytes) AS header_bytes, SUM(retransmitted_bytes) AS retransmitted_bytes "
              "FROM links GROUP BY tier HAVING SUM(payload_bytes + header_bytes) > 0 ORDER BY "
              "MIN(rowid)"));
  if (!chart.tables.back().rows.empty()) charts.push_back(std::move(chart));
}

void AppendBusiestLinks(const ResultStore& store, std::vector<Chart>& charts) {
  constexpr int kLinksDrawn = 20;
  Chart chart{.id = "links",
              .title = "The busiest links",
              .caption = fmt::format("The {} links that were in use for the largest share of the "
                                     "run.",
                                     kLinksDrawn)};
  chart.tables.push_back(TableOf(
      store, "links",
      fmt::format("SELECT link, tier, rate_bps, payload_bytes, header_bytes, retransmitted_bytes, "
                  "dropped_packets, 8e12 * (payload_bytes + header_bytes + retransmitted_bytes) / "
                  "rate_bps / (SELECT value FROM run WHERE key = 'simulated_time_ps') AS "
                  "utilization FROM links WHERE rate_bps > 0 AND payload_bytes + header_bytes > 0 "
                  "ORDER BY utilization DESC, link LIMIT {}",
                  kLinksDrawn)));
  if (!chart.tables.back().rows.empty()) charts.push_back(std::move(chart));
}

void AppendBursts(const ResultStore& store, std::vector<Chart>& charts) {
  const int64_t links = store.Count("SELECT COUNT(*) FROM traffic WHERE period_ps > 0");
  if (links == 0) return;
  const int64_t every = 1 + links / 5'000;
  Chart chart{.id = "bursts",
              .title = "Bursts",
              .caption =
                  "Each point is a link with two bursts or more: the mean time from one burst "
                  "to the next, and the share of it that the link is on."};
  if (every > 1) chart.note = fmt::format("One link in {} is drawn.", every);
  chart.tables.push_back(TableOf(
      store, "bursts",
      fmt::format("SELECT link, tier, flows, bursts, on_ps, period_ps, duty FROM traffic WHERE "
                  "period_ps > 0 AND rowid % {} = 0",
                  every)));
  if (!chart.tables.back().rows.empty()) charts.push_back(std::move(chart));
}

}  // namespace

void AppendTrafficCharts(const ResultStore& store, std::vector<Chart>& charts) {
  AppendPairs(store, charts);
  AppendIterations(store, charts);
  AppendTiers(store, charts);
  AppendBusiestLinks(store, charts);
}

void AppendBurstChart(const ResultStore& store, std::vector<Chart>& charts) {
  AppendBursts(store, charts);
}

}  // namespace railyard
