// SPDX-License-Identifier: GPL-2.0-only
// Runs the same job on several fabrics, each run in a separate process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/cli/cli.h"
#include "simulator/cli/fabric_option.h"
#include "topologies/prices/prices.h"

namespace railyard {

struct ComparedRun {
  std::string fabric;
  uint32_t gpus = 0;
  uint32_t switches = 0;
  uint64_t network_cables = 0;  // outside servers
  uint64_t bisection_bps = 0;   // with circuits, of their first configuration
  double network_cost = 0;      // CostOf
  double network_watts = 0;
  bool has_cost = false;  // the prices have one for a part of the network
  bool has_watts = false;
  std::string currency;
  ExitStatus exit_status = kExitDone;
  // These fields come from the run's summary; without one the status is empty.
  std::string status;
  int64_t simulated_time_ps = 0;
  double stretch_max = 0;
  double left_server_share = 0;
  double reached_spine_share = 0;
  struct TierBytes {
    std::string tier;
    uint64_t payload_bytes = 0;
  };
  std::vector<TierBytes> tiers;
};

// Runs `scenario`, including its faults, on the fabric, with its calibration and the fields of
// `sets`. Its findings go to standard error. Throws EnvironmentError if no process can be started
// or its result cannot be read.
ComparedRun RunOnFabric(const ShownFabric& shown, const std::string& scenario,
                        std::vector<std::string> sets, const Prices& prices);

// These return the comparison as a table for a terminal, and as JSON.
std::string ComparisonTable(const std::vector<ComparedRun>& runs);
std::string ComparisonJson(const std::vector<ComparedRun>& runs);

}  // namespace railyard
