// SPDX-License-Identifier: GPL-2.0-only
// Explains the waits of a run that stalled: from a rank over the transfers, each of which waits for
// another, to the queue pair or GPU for which all wait, and the link that is down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/replay/streams/call_table.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class WaitExplainer {
 public:
  // The state of a run that stalled.
  struct Stall {
    std::vector<LaneExecutor::Waiting> lanes{};
    std::vector<Call> running{};         // by Waiting::operation
    std::vector<Call> pending{};         // calls that may begin and have not, by their numbers
    std::vector<bool> is_gpu_stopped{};  // by GPU; those beyond its end are not
  };
  // Rank r of the job is GPU r. `graph` and `calls` must outlive this.
  WaitExplainer(const FabricGraph& graph, const CallTable& calls, Stall stall)
      : graph_(graph), calls_(calls), stall_(std::move(stall)) {}

  // Returns the longest chain of waits for each cause, on a line; then the waits of ranks, the GPUs
  // that stand still, and the calls that have not begun, a line each.
  std::string Explain() const;

 private:
  // A row of waits, by their numbers, and what it comes to.
  struct Chain {
    std::vector<size_t> waits;
    std::string cause;
  };

  std::string NameOf(const Call& call) const;
  const Call& CallOf(const LaneExecutor::Waiting& wait) const {
    return stall_.running[wait.operation];
  }
  uint32_t PeerOf(const LaneExecutor::Waiting& wait) const;
  bool IsStopped(GpuIndex gpu) const {
    return gpu < stall_.is_gpu_stopped.size() && stall_.is_gpu_stopped[gpu];
  }
  std::string WaitText(const LaneExecutor::Waiting& wait, const std::string& in) const;
  std::string StoppedText(GpuIndex gpu) const;
  std::string CauseOfIdle(uint32_t rank) const;
  std::optional<std::string> CauseOf(
      const LaneExecutor::Waiting& wait,
      const std::map<uint32_t, std::vector<size_t>>& waits_of_rank) const;
  std::vector<size_t> WaitsBehind(
      const LaneExecutor::Waiting& wait,
      const std::map<uint32_t, std::vector<size_t>>& waits_of_rank) const;
  std::vector<Chain> FindChains() const;
  std::string Chains() const;

  const FabricGraph& graph_;
  const CallTable& calls_;
  Stall stall_;
};

}  // namespace railyard
