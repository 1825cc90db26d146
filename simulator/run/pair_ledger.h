// SPDX-License-Identifier: GPL-2.0-only
// Counts payload between pairs of GPUs by the tiers that it crossed, and payload of switches that
// reduce or multicast.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/result/run_result.h"
#include "simulator/execution/connections/connection_table.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class PairLedger {
 public:
  // Counts the bytes that the executor's connections have carried.
  PairLedger(const FabricGraph& fabric, const ConnectionTable& table);
  // Writes pairs, bytes in switches and sums of payload to a result.
  void Record(RunResult& result) const;

 private:
  using Pair = std::pair<GpuIndex, GpuIndex>;  // source and destination GPU
  // Identifies switches, operation and GPU, as in an InNetworkResult.
  using SwitchUse = std::tuple<std::string_view, std::string_view, GpuIndex>;
  struct SwitchBytes {
    std::string tiers;
    uint64_t sent = 0;
    uint64_t received = 0;
  };

  void AddSwitchConnection(const Connection& connection, uint64_t payload_bytes);
  void AddNetworkSum(const Connection& connection, const Aggregated& aggregated,
                     const std::string& tiers);

  std::map<Pair, std::map<std::string, uint64_t>> bytes_;  // by tiers
  std::map<SwitchUse, SwitchBytes> in_network_;
  uint64_t payload_bytes_ = 0;
  uint64_t left_server_bytes_ = 0;
  uint64_t reached_spine_bytes_ = 0;
};

}  // namespace railyard
