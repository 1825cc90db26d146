// SPDX-License-Identifier: GPL-2.0-only
// Restarts a job that failed: its ranks end, it is queued, loads its last checkpoint and continues
// from it on the same fabric. Faults and other jobs continue meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/traffic/background_load.h"
#include "simulator/units/job_ids.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Restarts one of the jobs of a run.
class JobRestarter {
 public:
  // `job` is the replayed job, `part` the part that restarts. All references must outlive this.
  struct Run {
    const FabricGraph& fabric;
    Job& job;
    ReplayEngine& replay;
    FabricSimulatorImpl& engine;
    const FaultInjector& faults;
    BackgroundLoad& load;
  };
  JobRestarter(const RestartSettings& settings, PartIndex part, const Run& run);

  // Must be called when the job fails; its operations continue until its ranks have ended. Returns
  // true if it will restart.
  bool OnJobFailed(const std::string& why);
  // Returns true from a failure until the restart.
  bool is_down() const { return failed_ps_.has_value(); }

  const RestartResult& result() const { return result_; }

 private:
  void FindLastCheckpoint();
  void TryToEnd();
  void Restart();
  // Moves the job's ranks from broken servers to spares (MoveToSpares).
  ReplayEngine::SwappedRanks MoveRanks();

  const RestartSettings& settings_;
  PartIndex part_;
  Run run_;
  uint64_t checkpoint_ = 0;           // number of saved checkpoints
  int64_t progress_ps_;               // when the last was saved, or the last (re)start of the job
  std::vector<ServerIndex> spares_;   // servers
  std::optional<int64_t> failed_ps_;  // until it restarts
  std::string why_;                   // until it restarts
  RestartResult result_;
};

}  // namespace railyard
