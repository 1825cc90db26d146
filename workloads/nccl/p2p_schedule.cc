// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/p2p_schedule.h"

#include <algorithm>
#include <array>

#include "simulator/units/divide_up.h"
#include "workloads/nccl/nccl_chunking.h"
#include "workloads/nccl/nccl_versions.h"

namespace railyard {

namespace {

constexpr uint64_t kPartGrainBytes = 4096;
constexpr uint64_t kLlChunkBytes = 32u << 10;  // payload of a slot: NCCL_LL_LINES_PER_THREAD, …
constexpr uint64_t kLlSlotBytes = 2 * kLlChunkBytes;  // flags included
constexpr uint64_t kCopyBytesMax = 1u << 30;          // of a step; NCCL copies a part as a whole

// A Send or Recv and when its turn comes.
struct Turn {
  uint32_t pass = 0;  // number of earlier calls to the same peer in the same direction
  uint32_t round = 0;
  const P2pCall* call = nullptr;
};

std::vector<Turn> TurnsOf(const P2pOrder& order, RankIndex rank, const P2pCall* calls,
                          uint32_t call_count, bool in_place) {
  std::vector<Turn> turns;
  turns.reserve(call_count);
  std::vector<uint32_t> passes(2 * size_t{order.round_count()});
  for (uint32_t i = 0; i < call_count; ++i) {
    const P2pCall& call = calls[i];
    if (in_place && call.peer == rank) continue;
    const uint32_t round =
        call.is_send ? order.RoundOf(rank, call.peer) : order.RoundOf(call.peer, rank);
    turns.push_back({passes[2 * call.peer + (call.is_send ? 1 : 0)]++, round, &call});
  }
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    if (a.pass != b.pass) return a.pass < b.pass;
    if (a.round != b.round) return a.round < b.round;
    return a.call->is_send < b.call->is_send;  // the receive of a work first
  });
  return turns;
}

// Places the works of a channel in batches: a new batch begins when the last is full, already has a
// work of the same round or, from 2.29 on, has one of another eight rounds.
class BatchCursor {
 public:
  uint32_t Place(uint32_t round, uint32_t version) {
    const auto end = rounds_.begin() + work_count_;
    const bool is_of_others = version >= 22900 && work_count_ > 0 &&
                              round / kWorksPerBatch != rounds_[0] / kWorksPerBatch;
    if (work_count_ == kWorksPerBatch || is_of_others ||
        std::find(rounds_.begin(), end, round) != end) {
      ++batch_;
      work_count_ = 0;
    }
    rounds_[work_count_++] = round;
    return batch_;
  }

 private:
  uint32_t batch_ = 0;
  uint32_t work_count_ = 0;
  std::array<uint32_t, kWorksPerBatch> rounds_{};
};

// Returns the warps that copy the data of a send, a receive or a copy in a batch of that many works
// (nWarpPerWork, nSendWarpPerWork and nRecvWarpPerWork, src/device/sendrecv.h). Where
// three or more warps send, one of them only fences and posts (nworkers,
// src/device/prims_simple.h).
constexpr uint32_t P2pWarps(uint32_t works, bool sends, bool has_other) {
  constexpr uint32_t kCtaWarps = 20;  // NCCL_MAX_NTHREADS / WARP_SIZE
  const uint32_t work = kCtaWarps / works;
  const uint32_t receiving = work <= 4 ? work / 2 : (work - 1) / 2;
  const uint32_t sending = work <= 4 ? receiving : receiving + 1;
  const uint32_t all = receiving + sending;
  if (!sends) return has_other ? receiving : all;
  const uint32_t warps = has_other ? sending : all;
  return warps >= 3 ? warps - 1 : warps;
}
static_assert(P2pWarps(1, true, true) == kP2pPartWarps &&
              P2pWarps(1, false, true) == kP2pPartWarps);

}  // namespace

// Sizes that hold for all messages of a communicator.
struct P2pSchedule::PartRule {
  uint32_t version = 0;
  bool many_nodes = false;
  uint64_t step_bytes = 0;  // ncclComm::p2pChunkSize
  uint64_t ll_threshold_bytes = 0;
  uint32_t parts_first = 1;
  uint32_t parts_max = 1;

  // Up to 2.28 the limits of a part's size come from a slot of the message's protocol.
  uint32_t PartCount(uint64_t bytes, bool has_lines) const {
    if (bytes == 0) return 1;
    const bool by_lines =
        version < kFirstPartsBeforeProtocolVersion && GoesByLines(bytes, has_lines);
    const uint64_t slot_bytes = by_lines ? kLlSlotBytes : step_bytes;
    const uint64_t part_bytes_min = many_nodes ? slot_bytes / 2 : slot_bytes / 8;
    const uint64_t part_bytes_max = many_nodes ? slot_bytes : slot_bytes * 32;
    uint64_t parts = std::min<uint64_t>(parts_first, DivideUp(bytes, part_bytes_min));
    uint64_t part_bytes = std::max(part_bytes_min, DivideUp(bytes, parts));
    while (part_bytes > part_bytes_max && parts <= parts_max / 2) {
      parts *= 2;
      part_bytes = DivideUp(bytes, parts);
    }
    return static_cast<uint32_t>(parts);
  }
  // LL has no buffers over the network, unless one asks for them, and a rank copies to itself
  // without. Up to 2.28 the limit depends on the channels that a message can have, from 2.29 on on
  // those it has (2.28's source was not seen).
  bool GoesByLines(uint64_t bytes, bool has_lines) const {
    if (!has_lines) return false;
    const uint32_t channels =
        version < kFirstPartsBeforeProtocolVersion ? parts_max : PartCount(bytes, has_lines);
    return bytes <= channels * ll_threshold_bytes;
  }
  uint64_t ChunkBytes(uint64_t bytes, bool network) const {
    if (GoesByLines(bytes, !network)) return kLlChunkBytes;
    if (network && bytes < step_bytes) return step_bytes / 4;
    if (network && bytes < 8 * step_bytes) return step_bytes / 2;
    return step_bytes;
  }
};

P2pSchedule::PartRule P2pSchedule::PartRuleOf(const CommunicatorLayout& layout,
                                              const NcclSettings& settings,
                                              const CommunicatorChannels& channels) {
  PartRule rule;
  rule.version = settings.version;
  rule.ll_threshold_bytes = settings.p2p_ll_threshold_bytes;
  rule.many_nodes = layout.node_count() > 1;
  rule.step_bytes = std::min(rule.many_nodes ? settings.p2p_net_chunksize_bytes
                             : layout.nvlink ? settings.p2p_nvl_chunksize_bytes
                                             : settings.p2p_pci_chunksize_bytes,
                             settings.buffsize_bytes / kSlots);
  rule.parts_max = channels.p2p_channels_per_peer;
  rule.parts_first = rule.parts_max;
  while (rule.parts_first > 1 &&
         rule.parts_first * layout.ranks.size() > channels.p2p_channel_count) {
    rule.parts_first /= 2;
  }
  return rule;
}

struct P2pSchedule::PlacedLane {
  uint32_t channel = 0;
  uint32_t batch = 0;
  size_t work = 0;
  Lane lane;
};

// The part of a message, if it has anything, as the rule cuts it.
std::optional<P2pSchedule::Lane> P2pSchedule::PartOf(const P2pCall& call, uint32_t part,
                                                     const PartRule& rule, bool network) const {
  const bool is_copy = call.peer == rank_;
  const bool has_lines = !network && !is_copy;
  const uint32_t parts = rule.PartCount(call.bytes, has_lines);
  if (part >= parts || (is_copy && !call.is_send)) return std::nullopt;
  const uint64_t part_bytes =
      DivideUp(DivideUp(call.bytes, parts), kPartGrainBytes) * kPartGrainBytes;
  const uint64_t begin = std::min(call.bytes, part * part_bytes);
  const uint64_t bytes = std::min(part_bytes, call.bytes - begin);
  // Rounding can leave the last parts of a message with nothing; a message of no bytes is still
  // sent.
  if (bytes == 0 && call.bytes != 0) return std::nullopt;
  return Lane{.peer = call.peer,
              .is_send = call.is_send,
              .offset_bytes = begin,
              .bytes = bytes,
              .chunk_bytes = is_copy ? kCopyBytesMax : rule.ChunkBytes(call.bytes, network),
              .network = network,
              .by_lines = rule.GoesByLines(call.bytes, has_lines)};
}

P2pSchedule::P2pSchedule(const CommunicatorLayout& layout, const NcclSettings& settings,
                         const CommunicatorChannels& channels, const P2pOrder& order,
                         RankIndex rank, const P2pCall* calls, uint32_t call_count, bool in_place)
    : rank_(rank), rank_count_(static_cast<uint32_t>(layout.ranks.size())) {
  const PartRule rule = PartRuleOf(layout, settings, channels);
  const uint32_t channel_count = channels.p2p_channel_count;
  std::vector<PlacedLane> placed;
  std::vector<BatchCursor> cursors(channel_count);

  const std::vector<Turn> turns = TurnsOf(order, rank, calls, call_count, in_place);
  for (size_t i = 0; i < turns.size() && channel_count != 0;) {
    // The one or two turns of this work.
    size_t end = i + 1;
    while (end < turns.size() && turns[end].pass == turns[i].pass &&
           turns[end].round == turns[i].round) {
      ++end;
    }
    uint32_t parts_of_work = 0;
    for (size_t t = i; t < end; ++t) {
      const P2pCall& call = *turns[t].call;
      const bool has_lines =
          call.peer != rank && layout.ranks[rank].node == layout.ranks[call.peer].node;
      parts_of_work = std::max(parts_of_work, rule.PartCount(call.bytes, has_lines));
    }
    for (uint32_t part = 0; part < parts_of_work; ++part) {
      const uint32_t channel = order.ChannelOfPart(turns[i].round, part);
      const uint32_t batch = cursors[channel].Place(turns[i].round, settings.version);
      for (size_t t = i; t < end; ++t) {
        const P2pCall& call = *turns[t].call;
        const bool network = layout.ranks[rank].node != layout.ranks[call.peer].node;
        const std::optional<Lane> lane = PartOf(call, part, rule, network);
        if (lane) placed.push_back({channel, batch, i, *lane});
      }
    }
    i = end;
  }
  std::stable_sort(placed.begin(), placed.end(), [](const PlacedLane& a, const PlacedLane& b) {
    return a.channel != b.channel ? a.channel < b.channel : a.batch < b.batch;
  });

  Tabulate(placed, channel_count);
}

// Builds the flat tables and finds how many lanes of a batch share a channel's network buffers at
// most; sends and receives count separately.
void P2pSchedule::Tabulate(const std::vector<PlacedLane>& placed, uint32_t channel_count) {
  uint32_t subs_max = 1;
  std::array<uint32_t, 2> subs{};
  lanes_.reserve(placed.size());
  channel_batches_.assign(channel_count + 1, 0);
  for (size_t i = 0; i < placed.size(); ++i) {
    const PlacedLane& at = placed[i];
    bool is_second = false;
    if (i == 0 || at.channel != placed[i - 1].channel || at.batch != placed[i - 1].batch) {
      ++channel_batches_[at.channel + 1];
      batch_lanes_.push_back(static_cast<uint32_t>(i));
      batch_works_.push_back(1);
      subs = {};
    } else if (at.work != placed[i - 1].work) {
      ++batch_works_.back();
    } else {
      lanes_.back().has_other = true;
      is_second = true;
    }
    if (at.lane.network) subs_max = std::max(subs_max, ++subs[at.lane.is_send ? 1 : 0]);
    lanes_.push_back(at.lane);
    lanes_.back().has_other = lanes_.back().is_second = is_second;
  }
  batch_lanes_.push_back(static_cast<uint32_t>(placed.size()));
  for (uint32_t channel = 0; channel < channel_count; ++channel) {
    channel_batches_[channel + 1] += channel_batches_[channel];
  }
  // sendProxyProgress and recvProxyProgress (src/transport/net.cc): the ops that share a channel
  // share twice the slots of one.
  network_rule_.in_flight_messages = std::min(kSlots, 2 * kSlots / subs_max);
}

uint32_t P2pSchedule::BatchCount(RankIndex rank, uint32_t channel) const {
  return rank == rank_ ? channel_batches_[channel + 1] - channel_batches_[channel] : 0;
}

uint32_t P2pSchedule::LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const {
  if (rank != rank_) return 0;
  const uint32_t at = channel_batches_[channel] + batch;
  return batch_lanes_[at + 1] - batch_lanes_[at];
}

const MessageRule& P2pSchedule::MessageRuleOf(const LaneId& lane) const {
  static constexpr MessageRule kSimple;
  const Lane& at = LaneAt(lane);
  if (at.network) return network_rule_;
  return at.by_lines ? kP2pLlRule : kSimple;
}

LanePeers P2pSchedule::PeersOf(const LaneId& lane) const {
  const Lane& at = LaneAt(lane);
  LanePeers peers;
  if (at.peer == rank_) return peers;
  (at.is_send ? peers.send_to : peers.recv_from).push_back({at.peer, ConnectionUse::kPointToPoint});
  return peers;
}

WarpShare P2pSchedule::WarpShareOf(const LaneId& lane) const {
  const Lane& at = LaneAt(lane);
  const uint32_t works = batch_works_[BatchOf(lane)];
  const bool is_copy = at.peer == rank_;
  return {.parts = is_copy ? 2u : 1u,
          .of = works,
          .warps = at.network ? 0 : P2pWarps(works, at.is_send && !is_copy, at.has_other)};
}

uint64_t P2pSchedule::StepCount(const LaneId& lane) const {
  const Lane& at = LaneAt(lane);
  return std::max<uint64_t>(1, DivideUp(at.bytes, at.chunk_bytes));
}

Step P2pSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const Lane& at = LaneAt(lane);
  const uint64_t within_bytes = step * at.chunk_bytes;
  Step result;
  result.offset_bytes = at.offset_bytes + within_bytes;
  result.bytes = std::min(at.chunk_bytes, at.bytes - within_bytes);
  if (at.peer == rank_) {
    result.load_local = true;
    result.store = true;
  } else if (at.is_send) {
    result.send_to = static_cast<int32_t>(at.peer);
    result.load_local = true;
  } else {
    result.recv_from = static_cast<int32_t>(at.peer);
    result.store = true;
  }
  return result;
}

uint64_t P2pSchedule::AlikeFrom(const LaneId& lane, uint64_t step) const {
  const Lane& at = LaneAt(lane);
  const uint64_t full_chunks = at.bytes / at.chunk_bytes;
  return step < full_chunks ? full_chunks - step : 1;
}

}  // namespace railyard
