// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nvls_schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

NvlsTable::NvlsTable(std::vector<std::vector<uint32_t>> ranks_by_server)
    : servers(std::move(ranks_by_server)) {
  size_t rank_count = 0;
  for (const auto& ranks : servers) rank_count += ranks.size();
  server_of.resize(rank_count);
  head_of.resize(rank_count);
  for (uint32_t server = 0; server < servers.size(); ++server) {
    SIM_CHECK(servers[server].size() == servers.front().size() && servers[server].size() >= 2,
              "NVLS on servers with different numbers of GPUs, or with one");
    for (uint32_t head = 0; head < servers[server].size(); ++head) {
      server_of[servers[server][head]] = server;
      head_of[servers[server][head]] = head;
    }
  }
}

NvlsSchedule::NvlsSchedule(std::shared_ptr<const NvlsTable> table, NvlsParameters parameters)
    : table_(std::move(table)), parameters_(std::move(parameters)) {
  SIM_CHECK(parameters_.chunk_bytes > 0, "an NVLS schedule without a chunk size");
  SIM_CHECK(table_->servers.size() == 1 ? parameters_.shares.size() == parameters_.channel_count
                                        : parameters_.kind == CollectiveKind::kAllReduce,
            "NVLS over several servers is AllReduce, over one has a share for each channel");
}

uint32_t NvlsSchedule::BatchCount(uint32_t /*rank*/, uint32_t channel) const {
  return LoopCount(channel) != 0 ? 1 : 0;
}

std::span<const NvlsSchedule::Part> NvlsSchedule::PartsOf(uint32_t rank, uint32_t channel) const {
  static constexpr std::array kAllGather = {Part::kDown, Part::kGather};
  static constexpr std::array kReduceScatter = {Part::kScatter, Part::kUp};
  // The root's reduction goes straight down.
  static constexpr std::array kRoot = {Part::kScatter, Part::kUp, Part::kGather};
  static constexpr std::array kOther = {Part::kScatter, Part::kUp, Part::kDown, Part::kGather};
  if (parameters_.kind == CollectiveKind::kAllGather) return kAllGather;
  if (parameters_.kind == CollectiveKind::kReduceScatter) return kReduceScatter;
  if (table_->servers.size() == 1 || TreeOf(rank, channel).up == kNoPeer) return kRoot;
  return kOther;
}

uint32_t NvlsSchedule::LaneCount(uint32_t rank, uint32_t channel, uint32_t /*batch*/) const {
  return static_cast<uint32_t>(PartsOf(rank, channel).size());
}

// connectNvls (src/graph/connect.cc): even channels have the first tree over the servers, odd ones
// the second; the head of a slice meets the heads of the same slice.
TreePlace NvlsSchedule::TreeOf(uint32_t rank, uint32_t channel) const {
  const auto servers = static_cast<uint32_t>(table_->servers.size());
  if (servers == 1) return {};
  TreePlace place = PlaceInDoubleTree(servers, table_->server_of[rank], channel % 2 == 1);
  const auto head_there = [&](int32_t& peer) {
    if (peer == kNoPeer) return;
    peer =
        static_cast<int32_t>(table_->servers[static_cast<uint32_t>(peer)][table_->head_of[rank]]);
  };
  head_there(place.up);
  for (int32_t& child : place.down) head_there(child);
  return place;
}

LanePeers NvlsSchedule::PeersOf(const LaneId& lane) const {
  std::vector<LanePeer> operands;
  std::vector<LanePeer> results;
  for (const uint32_t rank : table_->servers[table_->server_of[lane.rank]]) {
    operands.push_back({rank, ConnectionUse::kSwitchOperand});
    results.push_back({rank, ConnectionUse::kSwitchResult});
  }
  const TreePlace place = TreeOf(lane.rank, lane.channel);
  std::vector<LanePeer> children;
  for (const int32_t child : place.down) {
    if (child != kNoPeer) children.push_back({static_cast<uint32_t>(child), ConnectionUse::kTree});
  }
  const auto joined = [](std::vector<LanePeer> a, const std::vector<LanePeer>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::vector<LanePeer> parent =
      place.up == kNoPeer
          ? std::vector<LanePeer>{}
          : std::vector<LanePeer>{{static_cast<uint32_t>(place.up), ConnectionUse::kTree}};
  switch (PartOf(lane)) {
    case Part::kScatter:
      return {{}, operands};
    case Part::kUp:
      if (parameters_.kind == CollectiveKind::kReduceScatter) return {operands, {}};
      return {joined(operands, children), place.up == kNoPeer ? joined(results, children) : parent};
    case Part::kDown:
      return {parent, joined(results, children)};
    case Part::kGather:
      break;
  }
  return {results, {}};
}

uint64_t NvlsSchedule::LoopCount(uint32_t channel) const {
  const uint64_t heads = table_->heads();
  if (parameters_.kind != CollectiveKind::kAllReduce) {
    return DivideUp(parameters_.shares[channel].bytes, parameters_.chunk_bytes);
  }
  if (table_->servers.size() == 1) {
    return DivideUp(parameters_.shares[channel].bytes, heads * parameters_.chunk_bytes);
  }
  const uint64_t loop_bytes = parameters_.channel_count * heads * parameters_.chunk_bytes;
  return DivideUp(parameters_.block_bytes, loop_bytes);
}

// Of AllReduce, a head's part of a loop; the last loop is shared evenly among the heads. Of the
// others, a part of the head's block.
NvlsSchedule::Chunk NvlsSchedule::ChunkOf(uint32_t channel, uint64_t loop, uint32_t head) const {
  const uint64_t heads = table_->heads();
  uint64_t chunk_bytes = parameters_.chunk_bytes;
  if (parameters_.kind != CollectiveKind::kAllReduce) {
    const ChannelShare& share = parameters_.shares[channel];
    const uint32_t rank = table_->servers.front()[head];
    const uint64_t within_bytes = loop * chunk_bytes;
    return {rank * parameters_.block_bytes + share.offset_bytes + within_bytes,
            std::min(chunk_bytes, share.bytes - within_bytes)};
  }
  const bool one_server = table_->servers.size() == 1;
  const uint64_t parts = one_server ? heads : heads * parameters_.channel_count;
  const uint64_t total_bytes =
      one_server ? parameters_.shares[channel].bytes : parameters_.block_bytes;
  const uint64_t begin_bytes = loop * parts * chunk_bytes;
  const uint64_t rest_bytes = total_bytes - begin_bytes;
  if (rest_bytes < parts * chunk_bytes) {
    const uint64_t grain_bytes = parameters_.grain_bytes;
    chunk_bytes = DivideUp(DivideUp(rest_bytes, parts), grain_bytes) * grain_bytes;
  }
  const uint64_t part = one_server ? head : channel * heads + head;
  const uint64_t within_bytes = std::min(rest_bytes, part * chunk_bytes);
  return {(one_server ? parameters_.shares[channel].offset_bytes : 0) + begin_bytes + within_bytes,
          std::min(chunk_bytes, rest_bytes - within_bytes)};
}

uint32_t NvlsSchedule::StepsAtOnce(const LaneId& lane) const {
  const Part part = PartOf(lane);
  return part == Part::kScatter || part == Part::kGather ? table_->heads() : 1;
}

uint64_t NvlsSchedule::StepCount(const LaneId& lane) const {
  return LoopCount(lane.channel) * StepsAtOnce(lane);
}

// Scatter and gather serve one head a step; the other parts the own slice.
Step NvlsSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const uint64_t heads = table_->heads();
  const Part part = PartOf(lane);
  const bool by_head = part == Part::kScatter || part == Part::kGather;
  const auto head = by_head ? static_cast<uint32_t>(step % heads) : table_->head_of[lane.rank];
  const Chunk chunk = ChunkOf(lane.channel, by_head ? step / heads : step, head);
  const auto head_rank = static_cast<int32_t>(table_->servers[table_->server_of[lane.rank]][head]);
  const TreePlace place = TreeOf(lane.rank, lane.channel);
  Step result;
  result.offset_bytes = chunk.offset_bytes;
  result.bytes = chunk.bytes;
  switch (part) {
    case Part::kScatter:
      result.send_to = head_rank;
      result.load_local = true;
      break;
    case Part::kUp:
      result.recv_from = kAllPeers;
      result.reduce = true;
      if (parameters_.kind == CollectiveKind::kReduceScatter) {
        result.store = true;
      } else {
        result.send_to = kAllPeers;
      }
      break;
    case Part::kDown:
      result.recv_from = place.up == kNoPeer ? kNoPeer : kAllPeers;
      result.load_local = place.up == kNoPeer;  // AllGather: the own block
      result.send_to = kAllPeers;
      break;
    case Part::kGather:
      result.recv_from = head_rank;
      result.store = true;
      break;
  }
  return result;
}

}  // namespace railyard
