// SPDX-License-Identifier: GPL-2.0-only
// Begins a job again that failed: its ranks end, it is queued, loads its last checkpoint and goes
// on from there, on the same fabric, whose faults have gone on meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/faults/background_load.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/replay_engine.h"
#include "simulator/run/pair_ledger.h"
#include "simulator/run/traffic_ledger.h"
#include "simulator/scenario/scenario.h"

namespace railyard {

class JobRestarter {
 public:
  // `job` is the one that is replayed. All references must outlive this.
  JobRestarter(const Scenario& scenario, Job& job, ReplayEngine& replay,
               FabricSimulatorImpl& engine, const FaultInjector& faults, BackgroundLoad& load,
               PairLedger& pairs, TrafficLedger& traffic);

  // The job failed, now. True: it will begin again.
  bool OnJobFailed(const std::string& why);
  // The connections of the failed job are about to go.
  void OnConnectionsGone();

  const RestartResult& result() const { return result_; }

 private:
  // When all ranks had saved that checkpoint, counted from 0, of those since the last restart:
  // computation since the one before it takes its time from when the collectives before it ended.
  // kNeverPs: it is not reached.
  int64_t SavedPs(uint64_t checkpoint) const;
  void FindLastCheckpoint();
  void TryToRestart();
  // The ranks of servers that are broken move to spares that are not, rank by rank; the broken ones
  // are the spares then. Returns whether any moved.
  bool MoveToSpares();

  const Scenario& scenario_;
  Job& job_;
  ReplayEngine& replay_;
  FabricSimulatorImpl& engine_;
  const FaultInjector& faults_;
  BackgroundLoad& load_;
  PairLedger& pairs_;
  TrafficLedger& traffic_;
  uint64_t checkpoint_ = 0;      // how many are saved
  int64_t progress_ps_ = 0;      // when the last was, or when the job began again there
  std::vector<int32_t> spares_;  // servers
  int64_t looks_ps_ = 0;         // for what is left of it
  RestartResult result_;
};

}  // namespace railyard
