// SPDX-License-Identifier: GPL-2.0-only
// Lists unfinished lanes with the causes of their waiting, and computes their progress, to explain
// hung runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/units/job_ids.h"

namespace railyard {

// Describes a waiting lane of a program, and the rank that it waits for.
struct WaitingLane {
  RunningIndex operation{};
  CommunicatorIndex communicator{};
  RankIndex rank{0};
  RankIndex peer{0};
  uint32_t channel = 0;
  bool for_data = false;  // else for a slot, or for the owner of a connection
  // The remaining fields describe a network connection.
  std::string transport;
  bool is_under_way = false;           // FlowStatus's
  std::vector<std::string> obstacles;  // FlowStatus's
};
// Returns all lanes that wait for another rank.
std::vector<WaitingLane> WaitingLanes(const LaneTable& lanes, const ConnectionTable& table);

// Returns the share, from 0 to 1, of the steps of all running lanes that has been executed.
double ShareOfSteps(const LaneTable& lanes);

}  // namespace railyard
