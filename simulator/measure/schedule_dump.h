// SPDX-License-Identifier: GPL-2.0-only
// The transfers of one collective, enumerated: as a table, as JSON, and as text in GOAL, the
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

// The schedule of a scenario's first collective.
struct PlannedCollective {
  JobCollective collective;
  std::string name;                                                  // "RING/SIMPLE", "P2P"
  std::vector<std::shared_ptr<const CollectiveSchedule>> schedules;  // by communicator rank
  bool in_place = false;                                             // as JobOperation's
  std::vector<std::string> assumptions;  // where NCCL's rules do not cover the layout
};
// Precondition: the scenario's job has a collective, over all ranks of its first communicator.
PlannedCollective PlanFirstCollective(const Scenario& scenario);
// Of a user's own algorithm, with `bytes` as nccl-tests count them, in slots of NCCL's default.
PlannedCollective PlanOf(const std::shared_ptr<const ExplicitAlgorithm>& algorithm, uint64_t bytes);

// What it means, checked without time; empty if it is right.
std::string CheckPlanned(const PlannedCollective& planned);

// Steps of all lanes, which is what enumerating costs.
uint64_t StepCountOf(const PlannedCollective& planned);

// Pieces of text, in order, for each transfer one line or object.
using TextSink = std::function<void(const std::string&)>;
// The table ends after `rows_max` transfers and says how many more there are.
void WriteScheduleTable(const PlannedCollective& planned, uint64_t rows_max, const TextSink& write);
void WriteScheduleJson(const PlannedCollective& planned, const TextSink& write);
// Chunks as messages, one receive or send each, in the order of their lanes. An operation of a lane
// requires the one before it. Why not, where it cannot be said in GOAL: NVSwitches that add up.
std::string WhyNotGoal(const PlannedCollective& planned);
void WriteScheduleGoal(const PlannedCollective& planned, const TextSink& write);

}  // namespace railyard
