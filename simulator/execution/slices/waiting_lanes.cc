// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/slices/waiting_lanes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace railyard {
namespace {

// The connection that a lane waits for, and the rank at its other end.
struct Cause {
  ConnectionId connection = ConnectionId::kNone;
  RankIndex peer{0};
  bool for_data = false;
};

// Returns the first connection that the lane waits for. If there is none, the lane waits for the
// owner of a connection that it has not claimed.
std::optional<Cause> CauseOf(LaneIndex id, const LaneTable& lanes, const ConnectionTable& table) {
  const Lane& lane = lanes.lane(id);
  const LaneProgram& position = lanes.position(id);
  const LanePeers peers = position.schedule->PeersOf(position.id);
  std::optional<Cause> cause;
  const auto look = [&](std::span<const ConnectionId> connections,
                        const std::vector<LanePeer>& ranks, bool MessageSlots::*waits,
                        bool for_data) {
    for (size_t i = 0; i < ranks.size() && !cause; ++i) {
      if (connections[i] == ConnectionId::kNone || !(table.slots(connections[i]).*waits)) continue;
      cause = {connections[i], ranks[i].rank, for_data};
    }
  };
  std::span<const ConnectionId> receives(&lane.receive_connection, 1);
  std::span<const ConnectionId> sends(&lane.send_connection, 1);
  if (lane.HasSeveralPeers()) {
    receives = lanes.connections(lane).receive_connections;
    sends = lanes.connections(lane).send_connections;
  }
  look(receives, peers.recv_from, &MessageSlots::receiver_waits, true);
  look(sends, peers.send_to, &MessageSlots::sender_waits, false);
  if (!cause && !lane.has_claimed && !peers.send_to.empty()) {
    cause = {sends.front(), peers.send_to.front().rank, false};
  }
  return cause;
}

}  // namespace

double ShareOfSteps(const LaneTable& lanes) {
  uint64_t done = 0;
  uint64_t all = 0;
  for (LaneIndex id; id < lanes.size(); ++id) {
    const Lane& lane = lanes.lane(id);
    if (!lane.in_use) continue;
    const LaneProgram& position = lanes.position(id);
    done += position.next_step - std::min<uint64_t>(lane.steps_left, position.next_step);
    all += position.step_count;
  }
  return all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all);
}

std::vector<WaitingLane> WaitingLanes(const LaneTable& lanes, const ConnectionTable& table) {
  std::vector<WaitingLane> waiting;
  for (LaneIndex id; id < lanes.size(); ++id) {
    if (!lanes.lane(id).in_use) continue;
    const std::optional<Cause> cause = CauseOf(id, lanes, table);
    if (!cause) continue;
    const RankProgram& program = lanes.ProgramOf(id);
    WaitingLane entry{.operation = program.operation,
                      .communicator = program.communicator,
                      .rank = program.rank,
                      .peer = cause->peer,
                      .channel = lanes.position(id).id.channel,
                      .for_data = cause->for_data,
                      .transport = {},
                      .is_under_way = false,
                      .obstacles = {}};
    if (cause->connection != ConnectionId::kNone &&
        table.connection(cause->connection).is_on_network()) {
      const Connection& connection = table.connection(cause->connection);
      FlowStatus status = connection.transport->StatusOf(connection.flow);
      entry.transport = std::move(status.description);
      entry.obstacles = std::move(status.obstacles);
      entry.is_under_way = status.is_under_way;
    }
    waiting.push_back(std::move(entry));
  }
  return waiting;
}

}  // namespace railyard
