// SPDX-License-Identifier: GPL-2.0-only
// How the events of lanes and messages extend critical paths.
#include "simulator/execution/paths/lane_paths.h"

#include <algorithm>
#include <span>

#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

CriticalPath& LaneExecutor::PathOfLane(const Lane& lane) {
  return paths_->lanes[static_cast<size_t>(&lane - lanes_.data())].path;
}

LanePaths::OfConnection& LaneExecutor::PathsOf(uint32_t id) {
  if (paths_->connections.size() <= id) paths_->connections.resize(table_.connections().size());
  std::unique_ptr<LanePaths::OfConnection>& paths = paths_->connections[id];
  if (!paths) {
    paths = std::make_unique<LanePaths::OfConnection>();
    if (table_.connection(id).network) {
      paths->network = std::make_unique<LanePaths::Network>();
      paths->network->first_links = table_.LinksOf(table_.connection(id));
    }
  }
  return *paths;
}

// --- Lanes ---------------------------------------------------------------------------------------

void LaneExecutor::TraceChannelStart(uint32_t id) {
  if (paths_->channels.size() <= id) paths_->channels.resize(active_channels_.size());
  const Program& program = active_channels_[id].program;
  CriticalPath& path = paths_->channels[id];
  path = {};
  path.origin_ps = engine_.NowPs();
  path.origin_gpu = table_.GpuOfRank(program.communicator, program.rank);
  path.collective = program.collective;
}

void LaneExecutor::TraceLaneStart(uint32_t id) {
  if (paths_->lanes.size() <= id) paths_->lanes.resize(lanes_.size());
  paths_->lanes[id] = {.path = paths_->channels[lane_programs_[id].channel]};
}

void LaneExecutor::TraceLaneEnd(uint32_t id) {
  const CriticalPath& path = paths_->lanes[id].path;
  CriticalPath& channel = paths_->channels[lane_programs_[id].channel];
  if (path.EndsAfter(channel)) channel = path;
}

void LaneExecutor::TraceSlice(const Lane& lane, int64_t start_ps, int64_t done_ps) {
  LanePaths::OfLane& traced = paths_->lanes[static_cast<size_t>(&lane - lanes_.data())];
  CriticalPath& path = traced.path;
  std::span<const uint32_t> receives(&lane.receive_connection, lane.receives ? 1 : 0);
  std::span<const uint32_t> sends(&lane.send_connection, lane.sends ? 1 : 0);
  if (lane.peers != kNone) {
    receives = lane_peers_[lane.peers].receives;
    sends = lane_peers_[lane.peers].sends;
  }
  const int64_t own_end_ps = path.EndPs();
  for (const uint32_t id : receives) {
    path.WaitFor(PathsOf(id).arrived[table_.slots(id).consumed % kConnectionSlots]);
  }
  for (const uint32_t id : sends) {
    const uint8_t freed = Ahead(table_.slots(id).posted, lane.in_flight_messages);
    path.WaitFor(PathsOf(id).freed[freed % kConnectionSlots]);
  }
  const auto be_slow = [&](int64_t time_ps) {
    if (time_ps <= 0) return;
    const uint32_t gpu = GpuOf(lane);
    path.Spend(PathCause::kSlowPeer, time_ps);
    path.Blame(gpu, gpu, time_ps);
  };
  if (traced.still_since_ps >= 0) {
    be_slow(engine_.NowPs() - std::max(traced.still_since_ps, path.EndPs()));
    traced.still_since_ps = -1;
  }
  // What passes between two slices, more of it if the GPU is slow.
  if (lane.slice_bytes != 0 && path.EndPs() == own_end_ps) {
    const int64_t at_full_speed_ps =
        costs_[lane.costs].costs.slice_overhead_ps / lane.steps_at_once;
    be_slow(std::min(start_ps - own_end_ps, OverheadPs(lane) - at_full_speed_ps));
  }
  path.ExtendTo(start_ps, PathCause::kWork);
  const int64_t slower_ps = done_ps - start_ps - SlicePs(lane);
  be_slow(slower_ps);
  path.ExtendTo(done_ps, PathCause::kWork);
}

// --- Messages ------------------------------------------------------------------------------------

void LaneExecutor::TraceTake(const Lane& lane, uint32_t id, uint32_t slot) {
  LanePaths::OfConnection& paths = PathsOf(id);
  if (paths.network) {
    paths.network->consumed[slot] = PathOfLane(lane);
    return;
  }
  paths.freed[slot] = PathOfLane(lane);
  paths.freed[slot].ExtendTo(lane.free_ps + table_.slots(id).flag_latency_ps, PathCause::kTransit);
}

void LaneExecutor::TraceSend(const Lane& lane, uint32_t id, uint32_t slot) {
  PathsOf(id).sent[slot] = PathOfLane(lane);
}

void LaneExecutor::TraceGrant(uint32_t id) {
  LanePaths::OfConnection& paths = PathsOf(id);
  const MessageSlots& slots = table_.slots(id);
  const Lane& lane = lanes_[slots.receiver];
  const uint32_t slot = slots.progress.granted % kConnectionSlots;
  // The message whose place it takes was consumed; the first ones are granted as the lane begins.
  const uint8_t before = Ahead(slots.progress.granted, lane.in_flight_messages);
  const int64_t now_ps = engine_.NowPs();
  CriticalPath path = paths_->channels[lane_programs_[slots.receiver].channel];
  path.WaitFor(paths.network->consumed[before % kConnectionSlots]);
  path.ExtendTo(now_ps, PathCause::kWork);
  paths.network->granted[slot] = path;
  paths.network->before_grant[slot] = table_.RecoveryOf(id, false);
}

void LaneExecutor::TraceWay(uint32_t id, bool is_data, const RecoveryTimes& before,
                            CriticalPath& path) {
  const Connection& connection = table_.connection(id);
  const RecoveryTimes times = table_.RecoveryOf(id, is_data);
  int64_t left_ps = engine_.NowPs() - path.EndPs();
  const auto spend = [&](PathCause cause, int64_t time_ps) {
    time_ps = std::min(time_ps, left_ps);
    if (time_ps <= 0) return;
    left_ps -= time_ps;
    path.Spend(cause, time_ps);
    path.Blame(connection.from_gpu, connection.to_gpu, time_ps);
  };
  spend(PathCause::kTimeout, times.timeout_ps - before.timeout_ps);
  spend(PathCause::kRetransmission, times.retransmission_ps - before.retransmission_ps);
  const bool is_rerouted = PathsOf(id).network->is_rerouted;
  path.ExtendTo(engine_.NowPs(), is_rerouted ? PathCause::kRerouted : PathCause::kTransit);
}

void LaneExecutor::TraceArrivedGrant(uint32_t id, uint32_t slot) {
  LanePaths::Network& network = *PathsOf(id).network;
  TraceWay(id, false, network.before_grant[slot], network.granted[slot]);
}

void LaneExecutor::TraceQueued(uint32_t id, uint32_t slot) {
  LanePaths::OfConnection& paths = PathsOf(id);
  paths.sent[slot].WaitFor(paths.network->granted[slot]);
}

void LaneExecutor::TracePost(uint32_t id, uint32_t slot) {
  LanePaths::OfConnection& paths = PathsOf(id);
  paths.sent[slot].ExtendTo(engine_.NowPs(), PathCause::kWork);
  paths.network->before_send[slot] = table_.RecoveryOf(id, true);
}

void LaneExecutor::TraceNetworkArrival(uint32_t id, uint32_t slot, int64_t seen_ps) {
  LanePaths::OfConnection& paths = PathsOf(id);
  paths.arrived[slot] = paths.sent[slot];
  TraceWay(id, true, paths.network->before_send[slot], paths.arrived[slot]);
  paths.arrived[slot].ExtendTo(seen_ps, PathCause::kWork);
}

void LaneExecutor::TraceCompletion(uint32_t id, uint32_t slot) {
  LanePaths::OfConnection& paths = PathsOf(id);
  paths.freed[slot] = paths.sent[slot];
  TraceWay(id, true, paths.network->before_send[slot], paths.freed[slot]);
}

// What was lost with the NIC has waited for its queue pair until now.
void LaneExecutor::TraceMove(uint32_t id) {
  LanePaths::Network& network = *PathsOf(id).network;
  const MessageSlots& slots = table_.slots(id);
  const NetworkProgress& progress = slots.progress;
  for (uint8_t i = slots.delivered; i != progress.sent; ++i) {
    const uint32_t slot = i % kConnectionSlots;
    TraceWay(id, true, network.before_send[slot], PathsOf(id).sent[slot]);
    network.before_send[slot] = {};
  }
  for (uint8_t i = progress.clear_to_send; i != progress.granted; ++i) {
    const uint32_t slot = i % kConnectionSlots;
    TraceWay(id, false, network.before_grant[slot], network.granted[slot]);
    network.before_grant[slot] = {};
  }
  network.is_rerouted = true;
}

void LaneExecutor::TraceRoutes() {
  for (uint32_t id = 0; id < paths_->connections.size(); ++id) {
    const auto& paths = paths_->connections[id];
    if (!paths || !paths->network) continue;
    paths->network->is_rerouted =
        table_.LinksOf(table_.connection(id)) != paths->network->first_links;
  }
}

std::vector<LanePaths::Kept> LaneExecutor::PathsAmong(std::span<const uint32_t> gpus) {
  std::vector<LanePaths::Kept> kept;
  for (const uint32_t id : table_.AllAmong(gpus)) {
    const LanePaths::OfConnection& paths = PathsOf(id);
    kept.push_back({.freed = paths.freed});
    if (!paths.network) continue;
    kept.back().consumed = paths.network->consumed;
    kept.back().granted = paths.network->granted;
  }
  return kept;
}

void LaneExecutor::PutPathsAmong(std::span<const uint32_t> gpus,
                                 const std::vector<LanePaths::Kept>& kept) {
  const std::vector<uint32_t> among = table_.AllAmong(gpus);
  for (size_t i = 0; i < among.size(); ++i) {
    LanePaths::OfConnection& paths = PathsOf(among[i]);
    paths.freed = kept[i].freed;
    if (!paths.network) continue;
    paths.network->consumed = kept[i].consumed;
    paths.network->granted = kept[i].granted;
  }
}

}  // namespace railyard
