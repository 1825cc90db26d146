// SPDX-License-Identifier: GPL-2.0-only
// Charts of who sent to whom, and over which links.
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
    chart.note = fmt::format("{} pairs: each cell is the sum over {} by {} GPUs.", CountText(pairs),
                             block, block);
  }
  chart.tables.push_back(TableOf(
      store, "pairs",
      fmt::format("SELECT source_gpu / {0} * {0} AS source_gpu, destination_gpu / {0} * {0} AS "
                  "destination_gpu, tiers_crossed, SUM(payload_bytes) AS payload_bytes FROM pairs "
                  "WHERE payload_bytes > 0 GROUP BY 1, 2, 3",
                  block)));
  charts.push_back(std::move(chart));
}

}  // namespace

void AppendTrafficCharts(const ResultStore& store, std::vector<Chart>& charts) {
  AppendPairs(store, charts);
}

}  // namespace railyard
