// SPDX-License-Identifier: GPL-2.0-only
// Payload between pairs of GPUs, by the tiers it crossed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analysis/run_result.h"
#include "simulator/replay/lane_executor.h"
#include "topologies/fabric_graph.h"

namespace railyard {

class PairLedger {
 public:
  // Of what the executor's connections have carried.
  PairLedger(const FabricGraph& fabric, const LaneExecutor& executor);
  // Puts pairs and sums of payload into a result.
  void Record(RunResult& result) const;

 private:
  std::map<std::pair<std::pair<uint32_t, uint32_t>, std::string>, uint64_t> bytes_;  // ends, tiers
  uint64_t payload_bytes_ = 0;
  uint64_t left_server_bytes_ = 0;
  uint64_t reached_spine_bytes_ = 0;
};

}  // namespace railyard
