// SPDX-License-Identifier: GPL-2.0-only
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "analysis/writers/cells.h"
#include "analysis/writers/result_tables.h"

namespace railyard {
namespace {

// Absent where nothing was looked at.
Cell MeanOf(double sum, uint64_t count) {
  return count == 0 ? Cell() : Cell(sum / static_cast<double>(count));
}
Cell LeastOf(uint64_t value, uint64_t count) { return count == 0 ? Cell() : IntegerCell(value); }

// The rows of links in a series that satisfy a condition, by number. To go on to a later one is
// quick; an earlier one is looked for from the first on.
class RowsWhere {
 public:
  using Condition = bool (*)(const LinkBin& row);

  RowsWhere(const TimeSeries& series, Condition is_row) : bins_(series.bins()), is_row_(is_row) {
    for (const TimeBin& bin : bins_) {
      for (const LinkBin& row : bin.links) size_ += is_row(row) ? 1u : 0u;
    }
    if (size_ > 0) GoToFirst();
  }

  size_t size() const { return size_; }
  // Goes to a row; bin() and row() are then its.
  void GoTo(size_t number) {
    if (number < number_) GoToFirst();
    for (; number_ < number; ++number_) {
      ++row_;
      PassOthers();
    }
  }
  size_t bin() const { return bin_; }
  const LinkBin& row() const { return *row_; }

 private:
  void GoToFirst() {
    number_ = 0;
    bin_ = 0;
    row_ = bins_.front().links.begin();
    PassOthers();
  }
  void PassOthers() {
    while (row_ == std::default_sentinel || !is_row_(*row_)) {
      if (row_ != std::default_sentinel) {
        ++row_;
      } else if (++bin_ < bins_.size()) {
        row_ = bins_[bin_].links.begin();
      } else {
        return;
      }
    }
  }

  std::span<const TimeBin> bins_;
  Condition is_row_;
  size_t size_ = 0;
  size_t number_ = 0;
  size_t bin_ = 0;
  LinkRows::Iterator row_;
};

}  // namespace

ResultTable SeriesTable(const RunResult& result) {
  return {
      .name = "series",
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
            {IntegerCell(row), bin.begin_ps, bin.end_ps, bin.replayed_ps, IntegerCell(bin.samples),
             IntegerCell(network.ecn_marked), IntegerCell(network.cnp), IntegerCell(network.nacks),
             IntegerCell(network.timeouts), IntegerCell(network.retransmitted_packets),
             MeanOf(static_cast<double>(seen), bin.samples), MeanOf(network.rate_sum_bps, seen),
             LeastOf(network.rate_min_bps, seen), MeanOf(network.window_sum_bytes, seen),
             LeastOf(network.window_min_bytes, seen)});
      }};
}

ResultTable LinkSeriesTable(const RunResult& result) {
  const auto rows = std::make_shared<RowsWhere>(result.series, [](const LinkBin& row) {
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
          .row_count = rows->size(),
          .append_row = [&result, rows](size_t number, std::vector<Cell>& cells) {
            rows->GoTo(number);
            const TimeBin& of = result.series.bins()[rows->bin()];
            const LinkBin& row = rows->row();
            const LinkResult& link = result.links[row.link];
            cells.insert(cells.end(), {IntegerCell(rows->bin()), of.begin_ps, of.end_ps, link.name,
                                       IntegerCell(row.wire_bytes), IntegerCell(row.payload_bytes),
                                       IntegerCell(row.packets), IntegerCell(row.dropped_packets),
                                       UtilizationOf(row, link.rate_bps, of.end_ps - of.begin_ps)});
          }};
}

ResultTable QueueSeriesTable(const RunResult& result) {
  const auto rows = std::make_shared<RowsWhere>(result.series, [](const LinkBin& row) {
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
          .row_count = rows->size(),
          .append_row = [&result, rows](size_t number, std::vector<Cell>& cells) {
            rows->GoTo(number);
            const TimeBin& of = result.series.bins()[rows->bin()];
            const LinkBin& row = rows->row();
            cells.insert(cells.end(), {IntegerCell(rows->bin()), of.begin_ps, of.end_ps,
                                       result.links[row.link].name,
                                       MeanOf(static_cast<double>(row.queue_sum_bytes), of.samples),
                                       LeastOf(row.queue_max_bytes, of.samples), row.paused_ps});
          }};
}

}  // namespace railyard
