// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/nccl_tests_rows.h"

#include <fstream>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

std::vector<NcclTestsRow> ReadNcclTests(const std::string& path, Diagnostics& diagnostics) {
  std::vector<NcclTestsRow> rows;
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    diagnostics.Error({.file = path}, "", why + " (expected what an nccl-tests program printed)");
    return rows;
  }
  std::ifstream file = OpenToRead(path);
  std::string line;
  bool has_row = false;
  NcclTestsText text;
  for (int number = 1; std::getline(file, line); ++number) {
    if (text.Take(line) != NcclTestsText::LineKind::kRow) continue;
    has_row = true;
    const SourceLocation where{path, number, 1};
    const NcclTestsLine& row = text.row();
    const auto time_us = ParseMeasuredUs(row.out_of_place_us);
    if (text.has_cpu_times()) {
      diagnostics.Error(where, "time",
                        "is the CPU's, of the launch alone (expected a table without -C 1)");
      break;  // of all rows
    }
    if (row.out_of_place_us.empty()) {
      diagnostics.Error(where, "time", "is of buffers in place (expected rows out of place)");
      break;
    }
    if (!time_us) {
      diagnostics.Error(where, "time",
                        fmt::format("{} is not a time (expected microseconds, 0.001 to 1e12)",
                                    Quote(row.out_of_place_us)));
    } else if (row.bytes > 0) {
      rows.push_back(
          {.bytes = row.bytes, .time_us = *time_us, .table = text.table(), .where = where});
    }
  }
  CheckReading(file, path);
  if (!has_row) {
    diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                      "no row of an nccl-tests table (expected lines that begin with a size and a "
                      "count and have 13 columns)");
  }
  return rows;
}

}  // namespace railyard
