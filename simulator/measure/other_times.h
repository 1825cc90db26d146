// SPDX-License-Identifier: GPL-2.0-only
// Reads times that other simulators give for measured collectives, one row each, as comma-separated
// values with the columns simulator,source_id,collective,nodes,gpus_per_node,bytes,time_us.
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/measured_table.h"

namespace railyard {

// Holds a time that `simulator` gives for a measured row.
struct OtherTime {
  std::string simulator;
  size_t measured = 0;  // index into the measured rows
  double time_us = 0;
};

// Returns the times. A line stands for every measured row with its source, collective, nodes, GPUs
// and bytes. Every mistake, and a line for which nothing was measured, is a finding at its line.
std::vector<OtherTime> ReadOtherTimes(const std::string& path,
                                      const std::vector<MeasuredRow>& measured,
                                      Diagnostics& diagnostics);

}  // namespace railyard
