// SPDX-License-Identifier: GPL-2.0-only
#include <cstddef>
#include <vector>

#include "analysis/metrics/run_metrics.h"
#include "analysis/writers/cells.h"
#include "analysis/writers/known_time.h"
#include "analysis/writers/result_tables.h"

namespace railyard {

ResultTable FaultsTable(const RunResult& result) {
  return {.name = "faults",
          .columns = {{"name", ColumnType::kText},
                      {"kind", ColumnType::kText},
                      {"target", ColumnType::kText},
                      {"from_ps", ColumnType::kInteger},
                      {"until_ps", ColumnType::kInteger},
                      {"begins", ColumnType::kInteger},
                      {"dropped_packets", ColumnType::kInteger},
                      {"retransmitted_bytes", ColumnType::kInteger},
                      {"collectives_hit", ColumnType::kInteger},
                      {"ranks_hit", ColumnType::kInteger},
                      {"bytes_hit", ColumnType::kInteger},
                      {"time_to_detect_ps", ColumnType::kInteger},
                      {"first_retransmission_ps", ColumnType::kInteger},
                      {"time_to_recover_ps", ColumnType::kInteger},
                      {"time_to_full_busbw_ps", ColumnType::kInteger}},
          .row_count = result.faults.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const FaultResult& fault = result.faults[row];
            cells.insert(
                cells.end(),
                {TextCell(fault.name), TextCell(fault.kind), TextCell(fault.target),
                 SignedCell(UnlessNever(fault.from_ps)), SignedCell(UnlessNever(fault.until_ps)),
                 IntegerCell(fault.begins), IntegerCell(fault.dropped_packets),
                 IntegerCell(fault.retransmitted_bytes), IntegerCell(fault.collectives.size()),
                 IntegerCell(fault.ranks_hit), IntegerCell(fault.bytes_hit),
                 SignedCell(UnlessNegative(fault.time_to_detect_ps)),
                 SignedCell(UnlessNegative(fault.first_retransmission_ps)),
                 SignedCell(UnlessNegative(fault.time_to_recover_ps)),
                 SignedCell(TimeToFullBusbwPs(result, fault))});
          }};
}

ResultTable DropsTable(const RunResult& result) {
  return {.name = "drops",
          .columns = {{"reason", ColumnType::kText},
                      {"packets", ColumnType::kInteger},
                      {"bytes", ColumnType::kInteger}},
          .row_count = result.drops.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const DropResult& drop = result.drops[row];
            cells.insert(cells.end(), {TextCell(drop.reason), IntegerCell(drop.packets),
                                       IntegerCell(drop.bytes)});
          }};
}

}  // namespace railyard
