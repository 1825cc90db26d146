// SPDX-License-Identifier: GPL-2.0-only
// Converts the state of a simulation, at its end or before, to plain numbers.
#pragma once

#include <string>
#include <string_view>

#include "analysis/result/run_result.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/faults/fault_injector.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/run/loss_recorder.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// Describes a simulation that has ended or is in progress.
struct RecordedSimulation {
  const Scenario& scenario;
  const Job& job;  // with the current places of its ranks
  const FabricNetwork& network;
  const ReplayEngine& replay;
  const LossRecorder& losses;
  const FaultInjector& faults;
  std::string interruption{};  // why it was ended early; empty if it was not
  bool goes_on = false;        // it is in progress
  // An event is only half done, so packets need not be accounted for.
  bool is_within_event = false;
};

// Returns the kind's name in results: "AllReduce", "SendRecv", …
std::string_view KindName(const JobCollective& collective);

// Returns all of a result except the process's resource usage and the baseline. Checks that bytes
// are conserved, except within an event.
RunResult RecordResult(const RecordedSimulation& simulation);

}  // namespace railyard
