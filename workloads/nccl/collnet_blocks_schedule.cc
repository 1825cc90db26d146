// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/collnet_blocks_schedule.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

namespace {

// Returns the distance from each rank to the rank in its place of the next server; 0 if it varies.
uint32_t RanksBetweenServers(const HeadTable& table) {
  if (table.servers[1].front() < table.servers[0].front()) return 0;
  const uint32_t distance = table.servers[1].front() - table.servers[0].front();
  for (size_t server = 1; server < table.servers.size(); ++server) {
    for (uint32_t head = 0; head < table.heads(); ++head) {
      if (table.servers[server][head] - table.servers[server - 1][head] != distance) return 0;
    }
  }
  return distance;
}

}  // namespace

CollnetBlocksSchedule::CollnetBlocksSchedule(std::shared_ptr<const HeadTable> table,
                                             CollnetBlocksParameters parameters)
    : ShapedSchedule(static_cast<uint32_t>(table->head_of.size()), parameters.channel_count,
                     parameters.message_rule),
      table_(std::move(table)),
      parameters_(parameters) {
  SIM_CHECK(table_->servers.size() >= 2 && parameters_.chunk_bytes > 0 &&
                parameters_.message_rule.slices_per_chunk == 1,
            "a CollNetDirect schedule of one server, without a chunk size, or with slices");
  if (parameters_.block_bytes == 0) return;
  ranks_between_servers_ = RanksBetweenServers(*table_);
  if (parameters_.chunk_bytes < parameters_.block_bytes) {
    chunks_of_block_ = DivideUp(parameters_.block_bytes, parameters_.chunk_bytes);
  } else if (ranks_between_servers_ != 0) {
    blocks_of_chunk_ = parameters_.chunk_bytes / parameters_.block_bytes;
  }
}

uint64_t CollnetBlocksSchedule::ChunkCount() const {
  if (parameters_.block_bytes == 0) return 0;
  return DivideUp(table_->servers.size(), blocks_of_chunk_) * chunks_of_block_;
}

uint64_t CollnetBlocksSchedule::ChunkCount(uint32_t channel) const {
  const uint64_t chunks = ChunkCount();
  return chunks > channel ? DivideUp(chunks - channel, channel_count()) : 0;
}

uint32_t CollnetBlocksSchedule::BatchCount(RankIndex /*rank*/, uint32_t channel) const {
  return ChunkCount(channel) != 0 ? 1 : 0;
}

uint32_t CollnetBlocksSchedule::LaneCount(RankIndex /*rank*/, uint32_t /*channel*/,
                                          uint32_t /*batch*/) const {
  return table_->heads() == 1 ? 2 : 3;
}

LanePeers CollnetBlocksSchedule::PeersOf(const LaneId& lane) const {
  const ConnectionUse within = Gathers() ? ConnectionUse::kExchange : ConnectionUse::kTree;
  std::vector<LanePeer> others;
  for (const RankIndex rank : table_->servers[table_->server_of[lane.rank]]) {
    if (rank != lane.rank) others.push_back({rank, within});
  }
  std::vector<LanePeer> rail = table_->HeadsOfSlice(lane.rank, ConnectionUse::kNetworkSum);
  switch (static_cast<Part>(lane.lane)) {
    case Part::kToNetwork:
      return {Gathers() ? std::vector<LanePeer>{} : std::move(others), std::move(rail)};
    case Part::kFromNetwork:
      return {std::move(rail), Gathers() ? std::move(others) : std::vector<LanePeer>{}};
    case Part::kOthers:
      break;
  }
  return Gathers() ? LanePeers{std::move(others), {}} : LanePeers{{}, std::move(others)};
}

uint64_t CollnetBlocksSchedule::StepCount(const LaneId& lane) const {
  const bool is_for_others = static_cast<Part>(lane.lane) == Part::kOthers;
  return ChunkCount(lane.channel) * (is_for_others ? table_->heads() - 1 : 1);
}

Step CollnetBlocksSchedule::ChunkAt(uint32_t head, uint64_t chunk) const {
  const uint64_t block_bytes = parameters_.block_bytes;
  const uint64_t server = chunk / chunks_of_block_ * blocks_of_chunk_;
  const uint64_t within_bytes = chunk % chunks_of_block_ * parameters_.chunk_bytes;
  const RankIndex owner = table_->servers[server][head];
  Step step;
  step.pieces = static_cast<uint32_t>(std::min(blocks_of_chunk_, table_->servers.size() - server));
  step.bytes = step.pieces * std::min(parameters_.chunk_bytes, block_bytes - within_bytes);
  step.stride_bytes = ranks_between_servers_ * block_bytes;
  step.offset_bytes = owner * block_bytes + within_bytes;
  step.owner = static_cast<int32_t>(owner);
  return step;
}

// GPUs begin with different heads: with the one behind their own (collnetDirect.shift).
Step CollnetBlocksSchedule::StepAt(const LaneId& lane, uint64_t index) const {
  const uint32_t heads = table_->heads();
  const uint32_t own = table_->head_of[lane.rank];
  const auto part = static_cast<Part>(lane.lane);
  if (part == Part::kOthers) {
    const auto head = static_cast<uint32_t>((own + 1 + index % (heads - 1)) % heads);
    Step step = ChunkAt(head, index / (heads - 1) * channel_count() + lane.channel);
    const auto peer = static_cast<int32_t>(table_->servers[table_->server_of[lane.rank]][head]);
    (Gathers() ? step.recv_from : step.send_to) = peer;
    step.owner = kNoPeer;
    step.store = Gathers();
    step.load_local = !Gathers();
    return step;
  }
  const int32_t others = heads == 1 ? kNoPeer : kAllPeers;
  Step step = ChunkAt(own, index * channel_count() + lane.channel);
  step.gathers = Gathers();
  step.scatters = !Gathers();
  if (part == Part::kToNetwork) {
    step.recv_from = Gathers() ? kNoPeer : others;
    step.send_to = kAllPeers;
    step.load_local = true;
    step.reduce = step.recv_from != kNoPeer;
  } else {
    step.recv_from = kAllPeers;
    step.send_to = Gathers() ? others : kNoPeer;
    step.reduce = true;
    step.store = true;
  }
  return step;
}

}  // namespace railyard
