// SPDX-License-Identifier: GPL-2.0-only
// Describes a collective without time: each rank and channel has an ordered program of steps. Each
// step is a pure function of its place and is evaluated on demand; a run never materializes the
// whole program.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/units/divide_up.h"
#include "simulator/units/rank_index.h"

namespace railyard {

inline constexpr int32_t kNoPeer = -1;
inline constexpr int32_t kAllPeers = -2;  // every peer of the lane in that direction

// Describes one step: receive a chunk from `recv_from` (if any), combine it with or put it into the
// local buffer, and send the outcome to `send_to` (if any). The chunk is the same in both
// directions, and with every peer if there are several. Kept data stays with the lane, for its
// later steps.
//
// The buffer on which a schedule works has `rank_count` blocks for AllGather, ReduceScatter,
// AllToAll, Gather and Scatter (block r belongs to rank r) and is one block for the others;
// offset_bytes counts from its start. In a point-to-point schedule it counts from the start of the
// message.
struct Step {
  int32_t recv_from = kNoPeer;  // communicator rank, or kAllPeers
  int32_t send_to = kNoPeer;
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;         // payload of the chunk; may be 0
  uint32_t pieces = 1;        // of equal size, in the chunk
  uint64_t stride_bytes = 0;  // from begin to begin of pieces, modulo the buffer
  bool load_local = false;    // this rank's contribution is an operand
  bool load_kept = false;     // the data that the lane has kept there is an operand
  bool reduce = false;        // operands and data from several peers are reduced
  bool keep = false;          // the outcome replaces the data kept there
  bool store = false;         // the outcome is written to this rank's result
  // Time that the step takes the CTA, in thousandths of what its bytes take. It is 0 if the
  // NIC or the peer's CTA moves them.
  uint32_t work_per_mille = 1000;
  // With these, over kNetworkSum each piece belongs to one rank: with `gathers` the other ranks
  // send nothing of it, with `scatters` they receive nothing of it, and no other rank loads or
  // stores it. The first piece belongs to `owner`; the next pieces belong to the ranks listed after
  // it on the lane.
  bool gathers = false;
  bool scatters = false;
  int32_t owner = kNoPeer;
};

// Identifies a lane. The lanes of a batch run concurrently (warps of one CTA), the steps of a lane
// run in order, and the batches of a channel run one after the other. Ring and tree collectives
// have one batch.
struct LaneId {
  RankIndex rank{0};
  uint32_t channel = 0;  // the communicator's channel
  uint32_t batch = 0;
  uint32_t lane = 0;
};

// Selects one of the connections between two ranks of a communicator: they may leave a server by
// different NICs.
enum class ConnectionUse : uint8_t {
  kRing,
  kPointToPoint,
  kTree,
  // Joins pairs of ranks that exchange data in some step, by the sender's own NIC: used by PAT and
  // by the baselines from research.
  kExchange,
  // NVLink SHARP: the data stays in the sender's memory, and the receiver makes the switch add it
  // up.
  kSwitchOperand,
  // NVLink SHARP: the switch copies the sender's stores to all receivers of the lane.
  kSwitchResult,
  // InfiniBand SHARP: the network's switches add up the data of all peers of the lane, itself
  // included, and every peer receives the sum unless the step says otherwise.
  kNetworkSum,
  // Kernels of experts, between what they take for servers: by the sender's own NIC, even to a rank
  // of the same server.
  kRemoteWrite,
};

// Names a rank from which a lane receives or to which it sends. It is the lane's own rank only if a
// switch is between.
struct LanePeer {
  RankIndex rank{0};
  ConnectionUse use = ConnectionUse::kRing;
};

// OwnedPieceOf() returns the piece that `rank` owns in a step that gathers or scatters; it is empty
// if there is none. `listed` are the lane's peers over kNetworkSum in that direction.
struct OwnedPiece {
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
};
OwnedPiece OwnedPieceOf(const Step& step, const std::vector<LanePeer>& listed, RankIndex rank);

// Represents the fraction parts / of.
struct WarpShare {
  uint32_t parts = 1;
  uint32_t of = 1;
  uint32_t warps = 0;  // that copy the lane's data, in Send and Recv; 0: unknown
};

// Lists the peers of all steps of a lane. If a direction has several, a step names kAllPeers or one
// of them.
struct LanePeers {
  std::vector<LanePeer> recv_from;
  std::vector<LanePeer> send_to;
};

// Defines how chunks become messages (NCCL's src/device/prims_simple.h): a chunk is posted in
// slices, each of which is one message.
struct MessageRule {
  uint32_t slices_per_chunk = 1;
  uint64_t slice_bytes_min = 0;     // of every slice except the last
  uint64_t slice_grain_bytes = 1;   // slices are rounded up to multiples
  uint32_t in_flight_messages = 8;  // credits of one connection, in messages
  // Payload is sent in lines that contain flags too: 8 of 16 bytes are payload with LL, 120 of 128
  // with LL128.
  uint32_t line_payload_bytes = 1;
  uint32_t line_wire_bytes = 1;
};

// Returns the bytes on the wire of a message with that payload, rounded up to whole lines.
inline uint64_t WireBytes(const MessageRule& rule, uint64_t payload_bytes) {
  if (rule.line_payload_bytes == 1) return payload_bytes;
  return DivideUp(payload_bytes, rule.line_payload_bytes) * rule.line_wire_bytes;
}

struct Slice {
  uint64_t offset_bytes = 0;  // within the chunk
  uint64_t bytes = 0;
};
// Returns the index-th slice of a chunk. All slices_per_chunk slices are posted; the last ones may
// be empty.
Slice SliceOf(const MessageRule& rule, uint64_t chunk_bytes, uint32_t index);

// Describes a collective's steps. The k-th send from a to b on a channel (over all lanes, batches
// and collectives of a communicator) matches the k-th receive of b from a: a connection is a FIFO.
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
  virtual uint32_t rank_count() const = 0;
  virtual uint32_t channel_count() const = 0;  // channels 0.. of the communicator; some may be idle
  virtual const MessageRule& message_rule() const = 0;
  // Returns the lane's message rule. In Send and Recv each message has its own protocol and
  // credits.
  virtual const MessageRule& MessageRuleOf(const LaneId& /*lane*/) const { return message_rule(); }
  virtual uint32_t BatchCount(RankIndex rank, uint32_t channel) const = 0;  // 0 if idle here
  virtual uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const = 0;
  virtual LanePeers PeersOf(const LaneId& lane) const = 0;
  // Returns the lane's share of the warps that move data in its direction, which are half of the
  // CTA's.
  virtual WarpShare WarpShareOf(const LaneId& lane) const {
    const uint32_t lanes = LaneCount(lane.rank, lane.channel, lane.batch);
    return {.of = lanes < 4 ? 1 : lanes / 2};
  }
  // Returns whether the lane and the one before it in its batch are two parts of the CTA with a
  // common limit, that of one WarpShare: a part is faster while the other moves nothing.
  virtual bool SharesWithLaneBefore(const LaneId& /*lane*/) const { return false; }
  // Returns the number of consecutive steps that share the CTA's overhead between two slices.
  virtual uint32_t StepsAtOnce(const LaneId& /*lane*/) const { return 1; }
  // Returns whether those steps are a round: the CTA begins it when all its messages have arrived
  // and can be sent, moves their bytes, and posts or frees all of them at its end. In a round each
  // peer of the lane has one step, of one slice, and StepCount is a multiple of StepsAtOnce.
  virtual bool AreOneRound(const LaneId& /*lane*/) const { return false; }
  virtual uint64_t StepCount(const LaneId& lane) const = 0;
  virtual Step StepAt(const LaneId& lane, uint64_t step) const = 0;
  // Returns a number of steps from `step` on, `step` included, that are known to have the same
  // peers, bytes and work, so that a caller that runs them in order need not query each.
  virtual uint64_t AlikeFrom(const LaneId& /*lane*/, uint64_t /*step*/) const { return 1; }
};

// Calls visit(lane) for each lane of one rank.
template <typename Visit>
void ForEachLaneOf(const CollectiveSchedule& schedule, RankIndex rank, Visit visit) {
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
      for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
        visit(LaneId{rank, channel, batch, lane});
      }
    }
  }
}

}  // namespace railyard
