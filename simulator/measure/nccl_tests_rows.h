// SPDX-License-Identifier: GPL-2.0-only
// Reads the tables in the output of a job that ran nccl-tests: comment lines, rows, and other
// output between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_tests/nccl_tests_text.h"

namespace railyard {

struct NcclTestsRow {
  uint64_t bytes = 0;
  double time_us = 0;    // out of place
  NcclTestsTable table;  // test and ranks, as far as the output states them
  SourceLocation where;
};

// Returns the rows of one or more tables, in order; other lines are skipped. Rows whose
// time cannot be read or is another than that of calls out of place, and a file without rows, are
// errors.
std::vector<NcclTestsRow> ReadNcclTests(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
