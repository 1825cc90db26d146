// SPDX-License-Identifier: GPL-2.0-only
// What a collective is, apart from time: for each rank and channel an ordered program of steps,
// each a pure function of its place, evaluated when needed and never materialized whole by a run.
#pragma once

#include <cstdint>

namespace railyard {

inline constexpr int32_t kNoPeer = -1;

// One step: receive a chunk from `recv_from` (if any), combine it with or put it into the local
// buffer, and send the outcome to `send_to` (if any). The chunk is the same in both directions.
//
// The buffer a schedule works on has `rank_count` blocks for AllGather, ReduceScatter, AllToAll,
// Gather and Scatter (block r belongs to rank r) and is one block for the others; offset_bytes
// counts from its start. In a point-to-point schedule it counts from the start of the message.
struct Step {
  int32_t recv_from = kNoPeer;  // communicator rank
  int32_t send_to = kNoPeer;
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;       // payload of the chunk; may be 0
  bool load_local = false;  // this rank's own contribution takes part
  bool reduce = false;      // the received data is reduced with the local contribution
  bool store = false;       // the outcome is written to this rank's result
};

// Where a step is: lanes of a batch run concurrently (warps of one CTA), the steps of a lane in
// order, batches of a channel one after the other. Ring and tree collectives have one batch.
struct LaneId {
  uint32_t rank = 0;     // communicator rank
  uint32_t channel = 0;  // the communicator's channel
  uint32_t batch = 0;
  uint32_t lane = 0;
};

// The ranks a lane receives from and sends to, in all of its steps that do: at most one of each.
struct LanePeers {
  int32_t recv_from = kNoPeer;
  int32_t send_to = kNoPeer;
};

// How chunks go on the wire (NCCL's src/device/prims_simple.h): a chunk is posted in slices, each
// one message.
struct MessageRule {
  uint32_t slices_per_chunk = 1;
  uint64_t slice_bytes_min = 0;     // of every slice but the last
  uint64_t slice_grain_bytes = 1;   // slices are rounded up to it
  uint32_t in_flight_messages = 8;  // credits of one connection, in messages
  // Bytes on the wire per payload byte, as a fraction (LL 2/1, LL128 16/15, Simple 1/1).
  uint32_t wire_numerator = 1;
  uint32_t wire_denominator = 1;
};

struct Slice {
  uint64_t offset_bytes = 0;  // within the chunk
  uint64_t bytes = 0;
};
// The index-th slice of a chunk. All slices_per_chunk slices are posted, the last ones may be
// empty.
Slice SliceOf(const MessageRule& rule, uint64_t chunk_bytes, uint32_t index);

// The k-th send from a to b on a channel (over all lanes, batches and collectives of a
// communicator) matches the k-th receive of b from a: a connection is a FIFO.
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;
  virtual uint32_t rank_count() const = 0;
  virtual uint32_t channel_count() const = 0;  // channels 0.. of the communicator; some may be idle
  virtual const MessageRule& message_rule() const = 0;
  virtual uint32_t BatchCount(uint32_t rank, uint32_t channel) const = 0;  // 0: channel idle here
  virtual uint32_t LaneCount(uint32_t rank, uint32_t channel, uint32_t batch) const = 0;
  virtual LanePeers PeersOf(const LaneId& lane) const = 0;
  virtual uint64_t StepCount(const LaneId& lane) const = 0;
  virtual Step StepAt(const LaneId& lane, uint64_t step) const = 0;
  // How many steps from `step` on, itself included, surely have its peers and its bytes; whoever
  // runs them in order need not ask for each.
  virtual uint64_t AlikeFrom(const LaneId& /*lane*/, uint64_t /*step*/) const { return 1; }
};

}  // namespace railyard
