// SPDX-License-Identifier: GPL-2.0-only
// Measured times beside simulated ones. A row becomes a platform, a network and NCCL's settings by
// what its columns say of the machine, and by nothing else: never by its source or its time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/measure/measured_table.h"
#include "simulator/measure/perf_point.h"

namespace railyard {

// What a row is simulated as; or why it cannot be.
struct FidelityPoint {
  std::string reason;  // empty: `point` is valid
  PerfPoint point;
  // What the measured time holds besides the collective's own.
  int64_t harness_ps = 0;
  std::string modelled_as;  // "dgx-h100, 2 nodes, InfiniBand"
};
FidelityPoint PointOf(const MeasuredRow& row);

struct FidelityRow {
  MeasuredRow measured;
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

// Simulates each distinct point once. `progress`: points done and their number.
FidelityResult RunFidelity(const std::vector<MeasuredRow>& rows, uint64_t bytes_max,
                           const std::function<void(size_t, size_t)>& progress);

// Of |error|: the value below which a share of `quantile` lies. Precondition: not empty.
double ErrorQuantile(const std::vector<double>& errors, double quantile);

std::string FidelityTable(const FidelityResult& result);
std::string FidelityJson(const FidelityResult& result);

}  // namespace railyard
