// SPDX-License-Identifier: GPL-2.0-only
// Begins a job again that failed: its ranks end, it is queued, loads its last checkpoint and goes
// on from there, on the same fabric, whose faults and other jobs have gone on meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/traffic/background_load.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// One of the jobs of a run.
class JobRestarter {
 public:
  // `job` is what is replayed, of which `part` is to begin again. All references must outlive this.
  struct Run {
    const FabricGraph& fabric;
    Job& job;
    ReplayEngine& replay;
    FabricSimulatorImpl& engine;
    const FaultInjector& faults;
    BackgroundLoad& load;
  };
  JobRestarter(const RestartSettings& settings, uint32_t part, const Run& run);

  // The job failed, now: what goes on goes on until its ranks are gone. True: it will begin again.
  bool OnJobFailed(const std::string& why);
  // It failed, and has not begun again yet.
  bool is_down() const { return failed_ps_.has_value(); }

  const RestartResult& result() const { return result_; }

 private:
  // When all ranks had saved that checkpoint, counted from 0, of those since the last restart:
  // computation since the one before it takes its time from when the collectives before it ended.
  // kNeverPs: it is not reached.
  int64_t SavedPs(uint64_t checkpoint) const;
  void FindLastCheckpoint();
  void TryToEnd();
  void Restart();
  // The job's ranks on servers that are broken move to spares that are not, rank by rank; the
  // broken ones are the spares then.
  ReplayEngine::SwappedRanks MoveToSpares();

  const RestartSettings& settings_;
  uint32_t part_;
  Run run_;
  uint64_t checkpoint_ = 0;           // how many are saved
  int64_t progress_ps_;               // when the last was, or when the job began, again or first
  std::vector<int32_t> spares_;       // servers
  std::optional<int64_t> failed_ps_;  // until it begins again
  std::string why_;                   // the same
  RestartResult result_;
};

}  // namespace railyard
