// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/writers/result_tables.h"

namespace railyard {
namespace {

Cell Count(uint64_t value) { return static_cast<int64_t>(value); }

// Absent where nothing was looked at.
Cell MeanOf(double sum, uint64_t count) {
  return count == 0 ? Cell() : Cell(sum / static_cast<double>(count));
}
Cell LeastOf(uint64_t value, uint64_t count) { return count == 0 ? Cell() : Count(value); }

// Where each row is: its bin, and its place among the links of that.
using Places = std::vector<std::pair<uint32_t, uint32_t>>;

template <typename IsRow>
std::shared_ptr<const Places> PlacesWhere(const TimeSeries& series, IsRow is_row) {
  size_t count = 0;
  for (const TimeBin& bin : series.bins()) {
    count += static_cast<size_t>(std::ranges::count_if(bin.links, is_row));
  }
  auto places = std::make_shared<Places>();
  places->reserve(count);
  for (uint32_t bin = 0; bin < series.bins().size(); ++bin) {
    const std::vector<LinkBin>& links = series.bins()[bin].links;
    for (uint32_t i = 0; i < links.size(); ++i) {
      if (is_row(links[i])) places->emplace_back(bin, i);
    }
  }
  return places;
}

}  // namespace

ResultTable SeriesTable(const RunResult& result) {
  return {.name = "series",
          .columns = {{"bin", ColumnType::kInteger},
                      {"begin_ps", ColumnType::kInteger},
                      {"end_ps", ColumnType::kInteger},
                      {"replayed_ps", ColumnType::kInteger},
                      {"samples", ColumnType::kInteger},
                      {"ecn_marked", ColumnType::kInteger},
                      {"cnp", ColumnType::kInteger},
                      {"nacks", ColumnType::kInteger},
                      {"timeouts", ColumnType::kInteger},
                      {"retransmitted_packets", ColumnType::kInteger},
                      {"queue_pairs", ColumnType::kReal},
                      {"rate_mean_bps", ColumnType::kReal},
                      {"rate_min_bps", ColumnType::kInteger},
                      {"window_mean_bytes", ColumnType::kReal},
                      {"window_min_bytes", ColumnType::kInteger}},
          .row_count = result.series.bins().size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const TimeSeries& series = result.series;
            const TimeBin& bin = series.bins()[row];
            const NetworkBin& network = bin.network;
            const uint64_t seen = network.queue_pairs;
            cells.insert(
                cells.end(),
                {Count(row), bin.begin_ps, bin.end_ps, bin.replayed_ps, Count(bin.samples),
                 Count(network.ecn_marked), Count(network.cnp), Count(network.nacks),
                 Count(network.timeouts), Count(network.retransmitted_packets),
                 MeanOf(static_cast<double>(seen), bin.samples), MeanOf(network.rate_sum_bps, seen),
                 LeastOf(network.rate_min_bps, seen), MeanOf(network.window_sum_bytes, seen),
                 LeastOf(network.window_min_bytes, seen)});
          }};
}

ResultTable LinkSeriesTable(const RunResult& result) {
  const auto places = PlacesWhere(result.series, [](const LinkBin& row) {
    return row.packets > 0 || row.wire_bytes > 0 || row.dropped_packets > 0;
  });
  return {.name = "link_series",
          .columns = {{"bin", ColumnType::kInteger},
                      {"begin_ps", ColumnType::kInteger},
                      {"end_ps", ColumnType::kInteger},
                      {"link", ColumnType::kText},
                      {"wire_bytes", ColumnType::kInteger},
                      {"payload_bytes", ColumnType::kInteger},
                      {"packets", ColumnType::kInteger},
                      {"dropped_packets", ColumnType::kInteger},
                      {"utilization", ColumnType::kReal}},
          .row_count = places->size(),
          .append_row = [&result, places](size_t number, std::vector<Cell>& cells) {
            const auto [bin, i] = (*places)[number];
            const TimeBin& of = result.series.bins()[bin];
            const LinkBin& row = of.links[i];
            const LinkResult& link = result.links[row.link];
            cells.insert(cells.end(),
                         {Count(bin), of.begin_ps, of.end_ps, std::string_view(link.name),
                          Count(row.wire_bytes), Count(row.payload_bytes), Count(row.packets),
                          Count(row.dropped_packets),
                          UtilizationOf(row, link.rate_bps, of.end_ps - of.begin_ps)});
          }};
}

ResultTable QueueSeriesTable(const RunResult& result) {
  const auto places = PlacesWhere(result.series, [](const LinkBin& row) {
    return row.queue_sum_bytes > 0 || row.paused_ps > 0;
  });
  return {.name = "queue_series",
          .columns = {{"bin", ColumnType::kInteger},
                      {"begin_ps", ColumnType::kInteger},
                      {"end_ps", ColumnType::kInteger},
                      {"link", ColumnType::kText},
                      {"queue_mean_bytes", ColumnType::kReal},
                      {"queue_max_bytes", ColumnType::kInteger},
                      {"paused_ps", ColumnType::kInteger}},
          .row_count = places->size(),
          .append_row = [&result, places](size_t number, std::vector<Cell>& cells) {
            const auto [bin, i] = (*places)[number];
            const TimeBin& of = result.series.bins()[bin];
            const LinkBin& row = of.links[i];
            cells.insert(cells.end(), {Count(bin), of.begin_ps, of.end_ps,
                                       std::string_view(result.links[row.link].name),
                                       MeanOf(static_cast<double>(row.queue_sum_bytes), of.samples),
                                       LeastOf(row.queue_max_bytes, of.samples), row.paused_ps});
          }};
}

}  // namespace railyard
