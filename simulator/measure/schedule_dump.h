// SPDX-License-Identifier: GPL-2.0-only
// Enumerates the transfers of one collective: as a table, as JSON, and as text in GOAL, the
// language of LogGOPSim (Hoefler, Schneider, Lumsdaine: "LogGOPSim", LSAP 2010).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/scenario/schema/scenario.h"
#include "workloads/collectives/explicit_schedule.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// Holds the schedule of a scenario's first collective.
struct PlannedCollective {
  JobCollective collective;
  std::string name;                                                  // "RING/SIMPLE", "P2P"
  std::vector<std::shared_ptr<const CollectiveSchedule>> schedules;  // by communicator rank
  bool in_place = false;                                             // as in JobOperation
  std::vector<std::string> assumptions;  // where NCCL's rules do not cover the layout
};
// Precondition: the scenario's job has a collective, over all ranks of its first communicator.
PlannedCollective PlanFirstCollective(const Scenario& scenario);
// Plans a user's own algorithm, with `bytes` as nccl-tests count them, in slots of NCCL's default
// size.
PlannedCollective PlanOf(const std::shared_ptr<const ExplicitAlgorithm>& algorithm, uint64_t bytes);

// Checks the result of the schedule without time; returns an empty string if it is correct.
std::string CheckPlanned(const PlannedCollective& planned);

// Returns the number of steps of all lanes, to which the cost of enumeration is proportional.
uint64_t StepCountOf(const PlannedCollective& planned);

// Receives pieces of text in order, one line or object per transfer.
using TextSink = std::function<void(const std::string&)>;
// Ends the table after `rows_max` transfers and says how many more there are.
void WriteScheduleTable(const PlannedCollective& planned, uint64_t rows_max, const TextSink& write);
void WriteScheduleJson(const PlannedCollective& planned, const TextSink& write);
// Returns why the collective cannot be expressed in GOAL (NVSwitches reduce), or an empty string if
// it can. In GOAL, chunks are messages with one receive or send each, in the order of their lanes,
// and an operation of a lane requires the one before it.
std::string WhyNotGoal(const PlannedCollective& planned);
void WriteScheduleGoal(const PlannedCollective& planned, const TextSink& write);

}  // namespace railyard
