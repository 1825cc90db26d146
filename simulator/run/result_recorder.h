// SPDX-License-Identifier: GPL-2.0-only
// Turns the state of a simulation, in the end or before, into plain numbers.
#pragma once

#include <string>
#include <string_view>

#include "analysis/result/run_result.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/run/loss_recorder.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// A simulation that has ended, or goes on.
struct RecordedSimulation {
  const Scenario& scenario;
  const Job& job;  // its ranks where they are by now
  const FabricNetwork& network;
  const ReplayEngine& replay;
  const LossRecorder& losses;
  const FaultInjector& faults;
  std::string interruption{};  // why it was ended before its end; empty: it was not
  bool goes_on = false;        // its results so far are recorded between two events
};

// Returns the kind's name in results: "AllReduce", "SendRecv", …
std::string_view KindName(const JobCollective& collective);

// Returns all of a result except the process's own use and the baseline. Checks that bytes are
// conserved.
RunResult RecordResult(const RecordedSimulation& simulation);

}  // namespace railyard
