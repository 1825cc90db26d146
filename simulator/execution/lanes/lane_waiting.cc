// SPDX-License-Identifier: GPL-2.0-only
// What lanes that have not finished wait for.
#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

double LaneExecutor::ShareOfSteps() const {
  uint64_t done = 0;
  uint64_t all = 0;
  for (uint32_t id = 0; id < lanes_.size(); ++id) {
    if (!lanes_[id].in_use) continue;
    const LaneProgram& program = lane_programs_[id];
    done += program.next_step - std::min<uint64_t>(lanes_[id].steps_left, program.next_step);
    all += program.step_count;
  }
  return all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all);
}

std::vector<LaneExecutor::Waiting> LaneExecutor::WaitingLanes() const {
  std::vector<Waiting> waiting;
  for (uint32_t id = 0; id < lanes_.size(); ++id) {
    const Lane& lane = lanes_[id];
    if (!lane.in_use) continue;
    const LaneProgram& lane_program = lane_programs_[id];
    const Program& program = active_channels_[lane_program.channel].program;
    const LanePeers peers = lane_program.schedule->PeersOf(lane_program.id);
    // The first connection that holds the lane up; without one, the lane that has the connection.
    struct Cause {
      uint32_t connection = kNone;
      uint32_t peer = 0;
      bool for_data = false;
    };
    std::optional<Cause> cause;
    const auto look = [&](std::span<const uint32_t> connections, const std::vector<LanePeer>& ranks,
                          bool MessageSlots::*waits, bool for_data) {
      for (size_t i = 0; i < ranks.size() && !cause; ++i) {
        if (connections[i] == kNone || !(table_.slots(connections[i]).*waits)) continue;
        cause = {connections[i], ranks[i].rank, for_data};
      }
    };
    std::span<const uint32_t> receives(&lane.receive_connection, 1);
    std::span<const uint32_t> sends(&lane.send_connection, 1);
    if (lane.peers != kNone) {
      receives = lane_peers_[lane.peers].receive_connections;
      sends = lane_peers_[lane.peers].send_connections;
    }
    look(receives, peers.recv_from, &MessageSlots::receiver_waits, true);
    look(sends, peers.send_to, &MessageSlots::sender_waits, false);
    if (!cause && !lane.has_claimed && !peers.send_to.empty()) {
      cause = {sends.front(), peers.send_to.front().rank, false};
    }
    if (!cause) continue;
    Waiting entry{.operation = program.operation,
                  .communicator = program.communicator,
                  .rank = program.rank,
                  .peer = cause->peer,
                  .channel = lane_program.id.channel,
                  .for_data = cause->for_data,
                  .transport = {},
                  .is_under_way = false,
                  .obstacles = {}};
    if (cause->connection != kNone && table_.connection(cause->connection).network) {
      const Connection& connection = table_.connection(cause->connection);
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
