// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/paths/path_tracer.h"

#include <algorithm>

namespace railyard {

PathTracer::OfConnection& PathTracer::Of(ConnectionId id) {
  if (connections_.size() <= id) connections_.resize(table_.connections().size());
  std::unique_ptr<OfConnection>& paths = connections_[id];
  if (!paths) {
    paths = std::make_unique<OfConnection>();
    if (table_.connection(id).is_on_network()) {
      paths->network = std::make_unique<Network>();
      paths->network->first_links = table_.LinksOf(table_.connection(id));
    }
  }
  return *paths;
}

// --- Lanes ---------------------------------------------------------------------------------------

void PathTracer::StartChannel(ChannelIndex channel, GpuIndex gpu, CollectiveIndex collective) {
  if (channels_.size() <= channel) channels_.resize(channel + size_t{1});
  CriticalPath& path = channels_[channel];
  path = {};
  path.origin_ps = engine_.NowPs();
  path.origin_gpu = gpu;
  path.collective = collective;
}

void PathTracer::StartLane(LaneIndex lane, ChannelIndex channel) {
  if (lanes_.size() <= lane) lanes_.resize(lane + size_t{1});
  lanes_[lane] = {.path = channels_[channel]};
}

void PathTracer::EndLane(LaneIndex lane, ChannelIndex channel) {
  const CriticalPath& path = lanes_[lane].path;
  if (path.EndsAfter(channels_[channel])) channels_[channel] = path;
}

void PathTracer::StandStill(LaneIndex lane) {
  int64_t& since_ps = lanes_[lane].still_since_ps;
  if (since_ps < 0) since_ps = engine_.NowPs();
}

void PathTracer::OnSlice(const Slice& slice) {
  if (on_slice_) on_slice_(slice);
  LaneTrace& traced = lanes_[slice.lane];
  CriticalPath& path = traced.path;
  const int64_t own_end_ps = path.EndPs();
  for (const ConnectionId id : slice.receives) {
    path.WaitFor(Of(id).arrived[table_.slots(id).consumed % kConnectionSlots]);
  }
  for (const ConnectionId id : slice.sends) {
    const uint8_t freed = Ahead(table_.slots(id).posted, slice.in_flight_messages);
    path.WaitFor(Of(id).freed[freed % kConnectionSlots]);
  }
  const auto be_slow = [&](int64_t time_ps) {
    if (time_ps <= 0) return;
    path.Spend(PathCause::kSlowPeer, time_ps);
    path.Blame(slice.gpu, slice.gpu, time_ps);
  };
  if (traced.still_since_ps >= 0) {
    be_slow(engine_.NowPs() - std::max(traced.still_since_ps, path.EndPs()));
    traced.still_since_ps = -1;
  }
  // The time between two slices is longer if the GPU is slow.
  if (!slice.is_empty && path.EndPs() == own_end_ps) {
    be_slow(std::min(slice.start_ps - own_end_ps, slice.slower_overhead_ps));
  }
  path.ExtendTo(slice.start_ps, PathCause::kWork);
  be_slow(slice.done_ps - slice.start_ps - slice.usual_ps);
  path.ExtendTo(slice.done_ps, PathCause::kWork);
}

// --- Messages ------------------------------------------------------------------------------------

void PathTracer::OnTaken(LaneIndex lane, ConnectionId id, uint32_t slot, int64_t free_ps) {
  OfConnection& paths = Of(id);
  if (paths.network) {
    paths.network->consumed[slot] = OfLane(lane);
    return;
  }
  paths.freed[slot] = OfLane(lane);
  paths.freed[slot].ExtendTo(free_ps + table_.slots(id).flag_latency_ps, PathCause::kTransit);
}

void PathTracer::OnSent(LaneIndex lane, ConnectionId id, uint32_t slot) {
  Of(id).sent[slot] = OfLane(lane);
}

void PathTracer::OnStored(ConnectionId id, uint32_t slot, int64_t here_ps) {
  Of(id).sent[slot].ExtendTo(here_ps, PathCause::kTransit);
}

void PathTracer::OnSeen(ConnectionId id, uint32_t slot, int64_t seen_ps) {
  OfConnection& paths = Of(id);
  paths.arrived[slot] = paths.sent[slot];
  paths.arrived[slot].ExtendTo(seen_ps, PathCause::kTransit);
}

void PathTracer::OnLoaded(ConnectionId id, uint32_t slot) {
  Of(id).arrived[slot].ExtendTo(engine_.NowPs(), PathCause::kTransit);
}

void PathTracer::OnGrant(ConnectionId id, ChannelIndex channel, uint8_t in_flight_messages) {
  OfConnection& paths = Of(id);
  const MessageSlots& slots = table_.slots(id);
  const uint32_t slot = slots.progress.granted % kConnectionSlots;
  // The grant depends on the consumption of the message whose slot it reuses. The first messages
  // are granted when the lane begins.
  const uint8_t before = Ahead(slots.progress.granted, in_flight_messages);
  CriticalPath path = channels_[channel];
  path.WaitFor(paths.network->consumed[before % kConnectionSlots]);
  path.ExtendTo(engine_.NowPs(), PathCause::kWork);
  paths.network->granted[slot] = path;
  paths.network->before_grant[slot] = table_.RecoveryOf(id, false);
}

void PathTracer::TraceWay(ConnectionId id, bool is_data, const RecoveryTimes& before,
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
  const bool is_rerouted = Of(id).network->is_rerouted;
  path.ExtendTo(engine_.NowPs(), is_rerouted ? PathCause::kRerouted : PathCause::kTransit);
}

void PathTracer::OnGranted(ConnectionId id, uint32_t slot) {
  Network& network = *Of(id).network;
  TraceWay(id, false, network.before_grant[slot], network.granted[slot]);
}

void PathTracer::OnQueued(ConnectionId id, uint32_t slot) {
  OfConnection& paths = Of(id);
  paths.sent[slot].WaitFor(paths.network->granted[slot]);
}

void PathTracer::OnPosted(ConnectionId id, uint32_t slot) {
  OfConnection& paths = Of(id);
  paths.sent[slot].ExtendTo(engine_.NowPs(), PathCause::kWork);
  paths.network->before_send[slot] = table_.RecoveryOf(id, true);
}

void PathTracer::OnArrived(ConnectionId id, uint32_t slot, int64_t seen_ps) {
  OfConnection& paths = Of(id);
  paths.arrived[slot] = paths.sent[slot];
  TraceWay(id, true, paths.network->before_send[slot], paths.arrived[slot]);
  paths.arrived[slot].ExtendTo(seen_ps, PathCause::kWork);
}

void PathTracer::OnCompleted(ConnectionId id, uint32_t slot) {
  OfConnection& paths = Of(id);
  paths.freed[slot] = paths.sent[slot];
  TraceWay(id, true, paths.network->before_send[slot], paths.freed[slot]);
}

// Messages lost with the NIC have waited for its queue pair until now.
void PathTracer::OnMove(ConnectionId id) {
  Network& network = *Of(id).network;
  const MessageSlots& slots = table_.slots(id);
  const NetworkProgress& progress = slots.progress;
  for (uint8_t i = slots.delivered; i != progress.sent; ++i) {
    const uint32_t slot = i % kConnectionSlots;
    TraceWay(id, true, network.before_send[slot], Of(id).sent[slot]);
    network.before_send[slot] = {};
  }
  for (uint8_t i = progress.clear_to_send; i != progress.granted; ++i) {
    const uint32_t slot = i % kConnectionSlots;
    TraceWay(id, false, network.before_grant[slot], network.granted[slot]);
    network.before_grant[slot] = {};
  }
  network.is_rerouted = true;
}

void PathTracer::OnRoutesChanged() {
  for (ConnectionId id; id < connections_.size(); ++id) {
    const auto& paths = connections_[id];
    if (!paths || !paths->network) continue;
    paths->network->is_rerouted =
        table_.LinksOf(table_.connection(id)) != paths->network->first_links;
  }
}

// --- Snapshots -----------------------------------------------------------------------------------

std::vector<PathTracer::Kept> PathTracer::Keep(std::span<const ConnectionId> connections) {
  std::vector<Kept> kept;
  for (const ConnectionId id : connections) {
    const OfConnection& paths = Of(id);
    kept.push_back({.freed = paths.freed});
    if (!paths.network) continue;
    kept.back().consumed = paths.network->consumed;
    kept.back().granted = paths.network->granted;
  }
  return kept;
}

void PathTracer::PutBack(std::span<const ConnectionId> connections, const std::vector<Kept>& kept) {
  for (size_t i = 0; i < connections.size(); ++i) {
    OfConnection& paths = Of(connections[i]);
    paths.freed = kept[i].freed;
    if (!paths.network) continue;
    paths.network->consumed = kept[i].consumed;
    paths.network->granted = kept[i].granted;
  }
}

}  // namespace railyard
