// SPDX-License-Identifier: GPL-2.0-only
// Defines the plain records of running programs: the programs of ranks, their channels, and their
// lanes. All fields that a slice accesses are in one cache line.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/step_aggregation.h"
#include "simulator/transport/contract/aggregation.h"
#include "simulator/units/identifier.h"
#include "simulator/units/job_ids.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

using ChannelIndex = Identifier<struct ChannelIndexTag>;  // a channel of a program that runs
using LaneConnectionsIndex = Identifier<struct LaneConnectionsTag>;  // LaneConnections of a lane

// Describes one rank's program of a collective. `operation` identifies it to the observer.
// `schedule` must live until the program's last OnChannelFinished().
struct RankProgram {
  RunningIndex operation{};
  CommunicatorIndex communicator{};
  RankIndex rank{0};
  CollectiveIndex collective{};
  uint32_t loss_tolerance_ppm = 0;  // of its messages over the network
  uint8_t costs = 0;                // CtaClock::AddCosts
  uint8_t line_costs = 0;           // the same for lanes whose messages consist of lines
  const CollectiveSchedule* schedule = nullptr;
};

// Describes a channel of a program. Its batches run one after the other.
struct ActiveChannel {
  RankProgram program;
  uint32_t channel = 0;
  uint32_t batch = 0;
  uint32_t lanes_left = 0;
  LaneIndex newest = LaneIndex::kNone;  // of the lanes opened
  int64_t end_ps = 0;
  ChannelIndex next_free = ChannelIndex::kNone;
};

// Holds the fields of a lane that every slice accesses.
struct alignas(64) Lane {
  int64_t free_ps = 0;  // when the CTA has moved the slice before
  uint64_t tie = 0;     // orders its events; a function of the lane's identity
  ConnectionId receive_connection = ConnectionId::kNone;
  ConnectionId send_connection = ConnectionId::kNone;
  FlowId send_flow;          // NVLink flow of its messages' first leg
  uint32_t steps_left = 0;   // of a row of steps with equal peers and bytes
  uint32_t step_bytes = 0;   // of each
  uint32_t first_bytes = 0;  // of a step's first slice
  uint32_t slice_bytes = 0;  // of the current slice
  uint32_t rest_bytes = 0;   // of the step, after the current slice
  LaneConnectionsIndex peers = LaneConnectionsIndex::kNone;  // if it has several peers
  uint8_t slices_left = 0;  // of the step, the current slice included
  uint8_t slices_per_chunk = 0;
  uint8_t in_flight_messages = 0;  // credits of each connection
  CtaShare cta;
  bool receives = false;  // in the current step
  bool sends = false;
  bool sends_over_nvlink : 1 = false;  // at least the first leg
  bool is_part : 1 = false;            // of a CTA, with rates of its own (LaneProgram::part)
  // If false, the lane has ended, and its pending events are ignored.
  bool in_use : 1 = false;
  bool has_claimed : 1 = false;  // its connections
  bool loads : 1 = false;        // from a host's memory, on one of them
  bool is_loaded : 1 = false;    // all loads of the current slice are complete
  uint8_t loading : 4 = 0;       // connections whose load is in progress
  uint8_t awaits = 0;            // messages to be injected, or the switch's sum

  bool HasSeveralPeers() const { return peers != LaneConnectionsIndex::kNone; }
};
static_assert(sizeof(Lane) == 64);

// Holds the position in a lane's steps up to which the sender's messages have been granted.
struct GrantCursor {
  uint64_t step = 0;  // the first one not examined yet
  uint64_t left = 0;  // messages of the steps before it that are not granted
};

// Holds what a part of a CTA knows of the other part, with which it shares a limit. A slice keeps
// the end that it has got when it began; if the other part begins meanwhile, the part's next slice
// makes up for it.
struct CtaPart {
  PartRates rates;
  LaneIndex other = LaneIndex::kNone;  // unless it has ended
  int64_t other_until_ps = 0;          // when the other has moved what it has begun
  int64_t ahead_ps = 0;                // CtaClock::AheadPs, to be made up for
};

// Holds the position of a lane in its schedule.
struct LaneProgram {
  const CollectiveSchedule* schedule = nullptr;
  LaneId id;
  uint64_t step_count = 0;
  uint64_t next_step = 0;          // the first one that the lane has not loaded
  uint32_t work_per_mille = 1000;  // of the steps that it has loaded (Step)
  GrantCursor grants{};            // to the sender of receive_connection
  CtaPart part{};
  ChannelIndex channel;
  LaneIndex next_free = LaneIndex::kNone;
};

// Holds the connections of a lane with several peers in a direction, and those that the current
// step uses.
struct LaneConnections {
  LanePeers listed;
  std::vector<ConnectionId> receive_connections;
  std::vector<ConnectionId> send_connections;
  std::vector<GrantCursor> grants;  // by receive connection
  std::vector<ConnectionId> receives;
  std::vector<ConnectionId> sends;
  std::vector<ConnectionId> operands;  // of `receives`, those that the switch adds up
  std::vector<ConnectionId> results;   // of `sends`, those that the switch copies to
  StepAggregation aggregation{};
  // A round is this number of steps (CollectiveSchedule::AreOneRound).
  uint32_t steps_of_round = 1;
  bool begins_round = true;   // the current step is the first of its round
  uint32_t round_bytes = 0;   // of the round's steps; unused if it has one
  int64_t round_ps = 0;       // that the warps take for the round's steps, one after the other
  int64_t next_round_ps = 0;  // the next round does not begin earlier
  LaneConnectionsIndex next_free = LaneConnectionsIndex::kNone;
};

}  // namespace railyard
