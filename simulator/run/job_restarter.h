// SPDX-License-Identifier: GPL-2.0-only
// Begins a job again that failed: its ranks end, it is queued, loads its last checkpoint and goes
// on from there, on the same fabric, whose faults have gone on meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/replay/replay_engine.h"
#include "simulator/run/pair_ledger.h"
#include "simulator/run/traffic_ledger.h"
#include "simulator/scenario/scenario.h"

namespace railyard {

class JobRestarter {
 public:
  // All references must outlive this.
  JobRestarter(const Scenario& scenario, ReplayEngine& replay, FabricSimulatorImpl& engine,
               PairLedger& pairs, TrafficLedger& traffic);

  // The job failed, now. True: it will begin again.
  bool OnJobFailed(const std::string& why);
  // The connections of the failed job are about to go.
  void OnConnectionsGone();

  const RestartResult& result() const { return result_; }

 private:
  // The first operation of the round that the last complete checkpoint precedes, of each rank.
  std::vector<uint32_t> LastCheckpoint();
  void TryToRestart();

  const Scenario& scenario_;
  ReplayEngine& replay_;
  FabricSimulatorImpl& engine_;
  PairLedger& pairs_;
  TrafficLedger& traffic_;
  std::vector<uint32_t> each_of_rank_;   // operations in a round
  std::vector<uint32_t> first_of_rank_;  // where it begins again
  int64_t progress_ps_ = 0;              // when it was where it begins again
  int64_t looks_ps_ = 0;                 // for what is left of it
  RestartResult result_;
};

}  // namespace railyard
