// SPDX-License-Identifier: GPL-2.0-only
// Compares measured times with simulated ones. The platform, the network and NCCL's settings of a
// row follow from the columns that describe the machine only, never from its source or its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/measure/measured_table.h"
#include "simulator/measure/perf_point.h"

namespace railyard {

// Holds the simulation of a row, or the reason why it cannot be simulated.
struct FidelityPoint {
  std::string reason;  // empty: `point` is valid
  PerfPoint point;
  // The measured time includes this time of the measuring harness.
  int64_t harness_ps = 0;
  std::string modelled_as;  // "dgx-h100, 2 nodes, InfiniBand"
};
// Maps a row to its simulation.
FidelityPoint PointOf(const MeasuredRow& row);

struct FidelityRow {
  MeasuredRow measured;
  size_t input = 0;  // index of `measured` among the rows given to RunFidelity()
  double simulated_us = 0;
  uint64_t packet_hops = 0;
  std::string replayed;
  double error() const { return simulated_us / measured.time_us - 1; }
};
struct FidelitySkipped {
  MeasuredRow measured;
  std::string reason;
};
struct FidelityResult {
  std::vector<FidelityRow> rows;
  std::vector<MeasuredRow> not_run;  // larger than bytes_max
  std::vector<FidelitySkipped> skipped;
};

// Simulates each distinct point once. `progress` receives the number of points done and their
// total.
FidelityResult RunFidelity(const std::vector<MeasuredRow>& rows, uint64_t bytes_max,
                           const std::function<void(size_t, size_t)>& progress);

// Returns the smallest |error| that more than a share of `quantile` does not exceed: of an even
// number, the median is the larger of the two in the middle, so that few rows do not look better
// than they are. Precondition: `errors` is not empty.
double ErrorQuantile(const std::vector<double>& errors, double quantile);

std::string FidelityTable(const FidelityResult& result);
std::string FidelityJson(const FidelityResult& result);

}  // namespace railyard
