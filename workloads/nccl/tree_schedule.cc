// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/tree_schedule.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

bool IsRoot(const TreePlace& place) { return place.up == kNoPeer; }

bool IsLeaf(const TreePlace& place) {
  return std::all_of(place.down.begin(), place.down.end(),
                     [](int32_t child) { return child == kNoPeer; });
}

std::vector<LanePeer> ChildrenOf(const TreePlace& place) {
  std::vector<LanePeer> children;
  for (const int32_t child : place.down) {
    if (child != kNoPeer) children.push_back({RankIndex{child}, ConnectionUse::kTree});
  }
  return children;
}

}  // namespace

TreeSchedule::TreeSchedule(std::shared_ptr<const TreeTable> trees, TreeParameters parameters)
    : trees_(std::move(trees)), parameters_(std::move(parameters)) {
  SIM_CHECK(!trees_->empty() && trees_->front().size() >= 2 &&
                parameters_.shares.size() == trees_->size() &&
                parameters_.chunk_bytes.size() == trees_->size(),
            "a tree schedule needs two ranks, and a share and a chunk size for each channel");
}

uint32_t TreeSchedule::BatchCount(RankIndex /*rank*/, uint32_t channel) const {
  return parameters_.shares[channel].bytes != 0 ? 1 : 0;
}

uint32_t TreeSchedule::LaneCount(RankIndex rank, uint32_t channel, uint32_t /*batch*/) const {
  return IsRoot((*trees_)[channel][rank]) ? 1 : 2;
}

LanePeers TreeSchedule::PeersOf(const LaneId& lane) const {
  const TreePlace& place = PlaceOf(lane);
  std::vector<LanePeer> children = ChildrenOf(place);
  if (IsRoot(place)) return {children, children};
  const std::vector<LanePeer> parent = {{RankIndex{place.up}, ConnectionUse::kTree}};
  return lane.lane == 0 ? LanePeers{std::move(children), parent}
                        : LanePeers{parent, std::move(children)};
}

uint64_t TreeSchedule::StepCount(const LaneId& lane) const {
  const uint64_t chunk_bytes = parameters_.chunk_bytes[lane.channel];
  return DivideUp(parameters_.shares[lane.channel].bytes, chunk_bytes);
}

Step TreeSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const TreePlace& place = PlaceOf(lane);
  const ChannelShare& share = parameters_.shares[lane.channel];
  const uint64_t within_bytes = step * parameters_.chunk_bytes[lane.channel];
  const int32_t children = IsLeaf(place) ? kNoPeer : kAllPeers;
  const bool up = IsRoot(place) || lane.lane == 0;
  const bool down = IsRoot(place) || lane.lane == 1;
  Step result;
  result.offset_bytes = share.offset_bytes + within_bytes;
  result.bytes = std::min(parameters_.chunk_bytes[lane.channel], share.bytes - within_bytes);
  result.recv_from = up ? children : place.up;
  result.send_to = down ? children : place.up;
  result.load_local = up;
  result.reduce = up && children != kNoPeer;
  result.store = down;
  return result;
}

uint64_t TreeSchedule::AlikeFrom(const LaneId& lane, uint64_t step) const {
  const uint64_t full_chunks =
      parameters_.shares[lane.channel].bytes / parameters_.chunk_bytes[lane.channel];
  return step < full_chunks ? full_chunks - step : 1;
}

}  // namespace railyard
