// SPDX-License-Identifier: GPL-2.0-only
// Explains the waits of a run that stalled: from a rank over the transfers, each of which waits for
// the next, to the queue pair or GPU for which all wait, and to the link that is down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/execution/executor/lane_executor.h"
#include "simulator/replay/streams/call_table.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class WaitExplainer {
 public:
  // Describes the state of a run that stalled.
  struct Stall {
    std::vector<LaneExecutor::Waiting> lanes{};
    std::vector<Call> running{};         // by Waiting::operation
    std::vector<Call> pending{};         // calls that may begin but have not, by number
    std::vector<bool> is_gpu_stopped{};  // by GPU; false beyond its end
  };
  // Rank r of the job is GPU r. `graph` and `calls` must outlive this.
  WaitExplainer(const FabricGraph& graph, const CallTable& calls, Stall stall)
      : graph_(graph), calls_(calls), stall_(std::move(stall)) {}

  // Returns a line with the longest chain of waits for each cause, then a line for each wait of a
  // rank, each halted GPU, and each call that has not begun.
  std::string Explain() const;

 private:
  // Holds a chain of waits, by their numbers, and its end.
  struct Chain {
    std::vector<size_t> waits;
    std::string cause;
  };

  std::string NameOf(const Call& call) const;
  const Call& CallOf(const LaneExecutor::Waiting& wait) const {
    return stall_.running[wait.operation];
  }
  GlobalRank PeerOf(const LaneExecutor::Waiting& wait) const;
  bool IsStopped(GpuIndex gpu) const {
    return gpu < stall_.is_gpu_stopped.size() && stall_.is_gpu_stopped[gpu];
  }
  std::string WaitText(const LaneExecutor::Waiting& wait, const std::string& in) const;
  std::string StoppedText(GpuIndex gpu) const;
  std::string CauseOfIdle(GlobalRank rank) const;
  std::optional<std::string> CauseOf(
      const LaneExecutor::Waiting& wait,
      const std::map<GlobalRank, std::vector<size_t>>& waits_of_rank) const;
  std::vector<size_t> WaitsBehind(
      const LaneExecutor::Waiting& wait,
      const std::map<GlobalRank, std::vector<size_t>>& waits_of_rank) const;
  std::vector<Chain> FindChains() const;
  std::string Chains() const;

  const FabricGraph& graph_;
  const CallTable& calls_;
  Stall stall_;
};

}  // namespace railyard
