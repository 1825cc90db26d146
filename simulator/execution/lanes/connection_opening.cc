// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/connection_opening.h"

namespace railyard {

void ConnectionOpening::Open(const RankProgram& program) {
  const CollectiveSchedule& schedule = *program.schedule;
  // A channel's first batch with lanes starts with the program, and the others later.
  for (const bool is_first : {true, false}) {
    for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
      const uint32_t batches = schedule.BatchCount(program.rank, channel);
      bool is_next_first = true;
      for (uint32_t batch = 0; batch < batches; ++batch) {
        const uint32_t lanes = schedule.LaneCount(program.rank, channel, batch);
        if (lanes == 0) continue;
        if (is_next_first == is_first) {
          if (!is_first) is_in_order_ = false;
          for (uint32_t number = 0; number < lanes; ++number) {
            OpenLane(program, {program.rank, channel, batch, number});
          }
        }
        is_next_first = false;
      }
    }
  }
}

void ConnectionOpening::OpenLane(const RankProgram& program, const LaneId& lane) {
  if (program.schedule->StepCount(lane) == 0) return;
  const LanePeers peers = program.schedule->PeersOf(lane);
  for (const LanePeer& peer : peers.recv_from) {
    OpenSide(program, lane, peer.rank, lane.rank, peer.use);
  }
  for (const LanePeer& peer : peers.send_to) {
    OpenSide(program, lane, lane.rank, peer.rank, peer.use);
  }
}

void ConnectionOpening::OpenSide(const RankProgram& program, const LaneId& lane, RankIndex from,
                                 RankIndex to, ConnectionUse use) {
  const ConnectionId id = table_.Between(program.communicator, lane.channel, from, to, use);
  const Connection& connection = table_.connection(id);
  if (connection.carrier == ConnectionCarrier::kNvSwitches ||
      connection.carrier == ConnectionCarrier::kAggregation) {
    obstacle_ = "switches combine data";
    return;
  }
  if (!connection.is_on_network()) return;
  if (!table_.IsQueuePair(connection)) {
    obstacle_ = "a connection consists of more than one queue pair";
    return;
  }
  if (from != lane.rank) return;
  // The receiver's proxy takes as long as the sender's kind of lane says.
  const bool has_lines = program.schedule->MessageRuleOf(lane).line_payload_bytes != 1;
  const uint8_t costs = has_lines ? program.line_costs : program.costs;
  const auto [known, is_new] = costs_.try_emplace(id, costs);
  if (known->second != costs) obstacle_ = "a connection is used with two protocols";
  table_.slots(id).costs = costs;
}

}  // namespace railyard
