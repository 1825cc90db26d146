// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/slices/lane_claims.h"

namespace railyard {
namespace {

// For sums of the network's switches, a rank has only one connection: its own.
bool IsOfOthers(const LanePeer& peer, const LaneId& lane) {
  return peer.use == ConnectionUse::kNetworkSum && peer.rank != lane.rank;
}

}  // namespace

bool LaneClaims::ClaimSide(LaneIndex id, ConnectionId connection, bool is_send) {
  LaneIndex MessageSlots::*const owner = is_send ? &MessageSlots::sender : &MessageSlots::receiver;
  MessageSlots& slots = table_.slots(connection);
  if (slots.*owner == id) return true;
  if (slots.*owner != LaneIndex::kNone) {
    claimants_[connection].push_back(id);
    return false;
  }
  slots.*owner = id;
  Connection& claimed = table_.connection(connection);
  const RankProgram& program = lanes_.ProgramOf(id);
  claimed.collective = program.collective;
  if (is_send) claimed.loss_tolerance_ppm = program.loss_tolerance_ppm;
  table_.StartOver(connection, is_send);
  return true;
}

bool LaneClaims::Claim(LaneIndex id) {
  const LaneProgram& position = lanes_.position(id);
  const LanePeers peers = position.schedule->PeersOf(position.id);
  if (!ClaimReceives(id, peers) || !ClaimSends(id, peers)) return false;
  Lane& lane = lanes_.lane(id);
  lane.has_claimed = true;
  if (lane.HasSeveralPeers() && lane.steps_left > 0) lanes_.SetStepConnections(id);
  return true;
}

bool LaneClaims::ClaimReceives(LaneIndex id, const LanePeers& peers) {
  const LaneId lane_id = lanes_.position(id).id;
  const CommunicatorIndex communicator = lanes_.ProgramOf(id).communicator;
  for (size_t i = 0; i < peers.recv_from.size(); ++i) {
    const LanePeer& peer = peers.recv_from[i];
    if (IsOfOthers(peer, lane_id)) continue;
    const ConnectionId connection =
        table_.Between(communicator, lane_id.channel, peer.rank, lane_id.rank, peer.use);
    if (table_.slots(connection).receiver == id) continue;
    if (!ClaimSide(id, connection, false)) return false;
    Lane& lane = lanes_.lane(id);
    if (table_.connection(connection).load_flow != FlowId::kNone) lane.loads = true;
    if (lane.HasSeveralPeers()) lanes_.connections(lane).receive_connections[i] = connection;
    if (i == 0) lane.receive_connection = connection;
    if (table_.slots(connection).network) proxies_.Grant(id, connection);
  }
  return true;
}

bool LaneClaims::ClaimSends(LaneIndex id, const LanePeers& peers) {
  const LaneId lane_id = lanes_.position(id).id;
  const CommunicatorIndex communicator = lanes_.ProgramOf(id).communicator;
  for (size_t i = 0; i < peers.send_to.size(); ++i) {
    const LanePeer& peer = peers.send_to[i];
    if (IsOfOthers(peer, lane_id)) continue;
    const ConnectionId connection =
        table_.Between(communicator, lane_id.channel, lane_id.rank, peer.rank, peer.use);
    if (!ClaimSide(id, connection, true)) return false;
    Lane& lane = lanes_.lane(id);
    if (lane.HasSeveralPeers()) lanes_.connections(lane).send_connections[i] = connection;
    if (i > 0) continue;
    const Connection& claimed = table_.connection(connection);
    lane.send_connection = connection;
    lane.sends_over_nvlink = !claimed.is_on_network() || claimed.is_relayed();
    lane.send_flow = claimed.is_relayed() ? claimed.relay_flow : claimed.flow;
  }
  return true;
}

void LaneClaims::ReleaseSide(ConnectionId connection, LaneIndex MessageSlots::*owner) {
  if (connection == ConnectionId::kNone) return;
  table_.slots(connection).*owner = LaneIndex::kNone;
  const auto found = claimants_.find(connection);
  if (found == claimants_.end()) return;
  for (const LaneIndex claimant : found->second) wakes_.Wake(claimant);
  claimants_.erase(found);
}

void LaneClaims::Release(LaneIndex id) {
  const Lane& lane = lanes_.lane(id);
  if (!lane.HasSeveralPeers()) {
    ReleaseSide(lane.send_connection, &MessageSlots::sender);
    ReleaseSide(lane.receive_connection, &MessageSlots::receiver);
    return;
  }
  const LaneConnections& connections = lanes_.connections(lane);
  for (const ConnectionId connection : connections.send_connections) {
    ReleaseSide(connection, &MessageSlots::sender);
  }
  for (const ConnectionId connection : connections.receive_connections) {
    ReleaseSide(connection, &MessageSlots::receiver);
  }
}

void LaneClaims::Forget(std::span<const ConnectionId> closed) {
  for (const ConnectionId connection : closed) claimants_.erase(connection);
}

}  // namespace railyard
