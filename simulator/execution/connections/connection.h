// SPDX-License-Identifier: GPL-2.0-only
// Defines the plain records of a connection, which lanes and proxies update. A connection is one
// direction between two ranks on one channel of a communicator: a FIFO of messages with NCCL's
// slots as credits. The fields that every slice accesses are stored separately, because at a
// thousand GPUs the cost of a slice is its cache misses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simulator/execution/connections/lane_index.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/units/identifier.h"
#include "simulator/units/job_ids.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

using ConnectionId = Identifier<struct ConnectionIdTag>;

inline constexpr uint32_t kConnectionSlots = 8;  // NCCL_STEPS
// A run may have at most this many connections, which need more than 16 GiB.
inline constexpr uint32_t kConnectionsMax = 1u << 26;

// Names what carries the messages of a connection.
enum class ConnectionCarrier : uint8_t {
  kStores,       // between GPUs of a server, over NVLink or PCIe
  kHostMemory,   // stores into a host's memory, and loads from there
  kNvSwitches,   // NVLink SHARP: groups of several connections
  kAggregation,  // trees of the network's switches
  kTransport,    // between servers
};

// Holds the ends of a connection and those of its mutable fields that not every slice accesses. A
// record is one cache line, which the proxies of a network connection touch for each message.
struct alignas(64) Connection {
  static constexpr uint32_t kNone = UINT32_MAX;  // no staged messages, no aggregations

  uint64_t tie = 0;  // orders its events; a function of its ends and use
  GpuIndex from_gpu{0};
  GpuIndex to_gpu{0};
  GpuIndex injecting_gpu{0};  // whose NIC and proxy send; from_gpu where nothing is relayed
  FlowId flow;                // of its carrier
  // PXN: the NVLink flow to the relaying GPU, whose NIC injects. It is kNone where none relays.
  FlowId relay_flow = FlowId::kNone;
  FlowId load_flow = FlowId::kNone;  // by which the receiver loads from a host's memory: SHM
  Transport* transport = nullptr;    // with kTransport
  CommunicatorIndex communicator{};
  uint32_t staged = kNone;        // index of StagedMessages: network connections and sums
  uint32_t aggregations = kNone;  // of a sum: index of its staged operations
  CollectiveIndex collective = CollectiveIndex::kNone;  // that used either side last
  uint32_t loss_tolerance_ppm = 0;                      // of its sender's messages
  ConnectionUse use = ConnectionUse::kRing;
  ConnectionCarrier carrier = ConnectionCarrier::kStores;
  bool is_buffered = false;  // Transport::BuffersMessages
  bool is_detoured = false;  // around a NIC that has failed: NicDetours

  bool is_on_network() const { return carrier == ConnectionCarrier::kTransport; }
  bool is_relayed() const { return relay_flow != FlowId::kNone; }
  // The next two are true for NVLink SHARP. `flow` is then a group that is opened when first used.
  // Among the operands' connections to a head, only the first one has it.
  bool is_switch_operand() const { return use == ConnectionUse::kSwitchOperand; }
  bool is_switch_result() const { return use == ConnectionUse::kSwitchResult; }
  // A sum by the network's switches is a connection from a rank to itself. `flow` is then its place
  // in an aggregation tree and is opened when first used.
  bool is_network_sum() const { return use == ConnectionUse::kNetworkSum; }

  static constexpr auto Fields() {
    using C = Connection;
    constexpr std::string_view kProgram = "the next program that uses the connection sets it";
    return FieldTable(
        "connection", field::Fixed("tie", &C::tie), field::Fixed("from_gpu", &C::from_gpu),
        field::Fixed("to_gpu", &C::to_gpu), field::Fixed("injecting_gpu", &C::injecting_gpu),
        field::Fixed("flow", &C::flow), field::Fixed("relay_flow", &C::relay_flow),
        field::Fixed("load_flow", &C::load_flow), field::Fixed("transport", &C::transport),
        field::Fixed("communicator", &C::communicator), field::Fixed("staged", &C::staged),
        field::Fixed("aggregations", &C::aggregations),
        field::NoState("collective", &C::collective, kProgram),
        field::NoState("loss_tolerance_ppm", &C::loss_tolerance_ppm, kProgram),
        field::Fixed("use", &C::use), field::Fixed("carrier", &C::carrier),
        field::Fixed("is_buffered", &C::is_buffered),
        field::Constant("is_detoured", &C::is_detoured));
  }
};
static_assert(sizeof(Connection) == 64);

// Holds the messages that the sender of a network connection has written for its proxy. They are in
// separate slots. A slot becomes free when its message is acknowledged, whether or not the receiver
// has used the message.
struct StagedMessages {
  std::array<uint32_t, kConnectionSlots> bytes{};
  std::array<int64_t, kConnectionSlots> time_ps{};  // when the copy is complete
};

// Counts a network connection's messages that have reached each stage, modulo 256.
struct NetworkProgress {
  uint8_t relayed = 0;        // PXN: arrived at the relaying GPU
  uint8_t staged = 0;         // the proxy has seen them
  uint8_t clear_to_send = 0;  // the receiver's element for them has arrived
  uint8_t queued = 0;         // staged and clear to send, so the proxy will post them
  uint8_t sent = 0;           // the proxy has posted them
  uint8_t completed = 0;      // acknowledged
  uint8_t granted = 0;        // the receiver has posted their clear-to-send

  static constexpr auto Fields() {
    using P = NetworkProgress;
    constexpr std::string_view kPosted =
        "ConnectionTable::VisitConnection compares it with MessageSlots::posted";
    return FieldTable("progress", field::NoState("relayed", &P::relayed, kPosted),
                      field::NoState("staged", &P::staged, kPosted),
                      field::NoState("clear_to_send", &P::clear_to_send, kPosted),
                      field::NoState("queued", &P::queued, kPosted),
                      field::NoState("sent", &P::sent, kPosted),
                      field::NoState("completed", &P::completed, kPosted),
                      field::NoState("granted", &P::granted, kPosted));
  }
};

// Marks a message's size in 16 bits: 0 for no bytes, otherwise 15 hash bits, which are equal for
// two different sizes with a probability of 1 in 32,768. It suffices to detect that the two sides
// of a schedule disagree.
using SizeMark = uint16_t;
// Marks messages that another process has sent. Only that process knows their sizes.
inline constexpr SizeMark kUnknownSize = 1;
inline SizeMark MarkOf(uint32_t bytes) {
  return bytes == 0 ? 0 : static_cast<SizeMark>(0x8000u | (bytes * 0x9E3779B1u) >> 17);
}

// Describes the messages in flight. The counters wrap around at 256; only differences of at most
// kConnectionSlots matter.
struct alignas(128) MessageSlots {
  uint8_t posted = 0;           // a channel has begun to write their slice
  uint8_t delivered = 0;        // in the receiver's memory
  uint8_t consumed = 0;         // the receiver's channel has begun to read them
  bool network = false;         // as of the connection
  bool sender_waits = false;    // for a slot
  bool receiver_waits = false;  // for a message
  uint8_t costs = 0;            // class of the lane that sent last (CtaClock::AddCosts)
  bool is_closed = false;       // its programs were ended; its events have no effect
  NetworkProgress progress;
  LaneIndex sender = LaneIndex::kNone;    // lane that owns the sending side
  LaneIndex receiver = LaneIndex::kNone;  // lane that owns the receiving side
  std::array<SizeMark, kConnectionSlots> sizes{};
  int64_t flag_latency_ps = 0;  // NVLink: a flag's way, there or back
  // The next two fields are copied from a lane that waits for a message, so that the arrival need
  // not access the lane: the time when its CTA has finished the slice before, and its tie.
  int64_t receiver_free_ps = 0;
  uint64_t receiver_tie = 0;
  // The time of the latest known event of each message. Over NVLink it is first the completion of
  // the sender's copy. After the arrival it is the time when the receiver sees the message. Over
  // NVLink, after the consumption, it is the time when the sender sees the slot free.
  std::array<int64_t, kConnectionSlots> time_ps{};

  static constexpr auto Fields() {
    using S = MessageSlots;
    constexpr std::string_view kWaits = "the next lane that waits for a message sets it";
    return FieldTable(
        "messages", field::NoState("posted", &S::posted, "it names slots, and nothing else"),
        field::Follows("delivered", &S::delivered, &S::posted),
        field::Follows("consumed", &S::consumed, &S::posted), field::Fixed("network", &S::network),
        field::Idle("sender_waits", &S::sender_waits),
        field::Idle("receiver_waits", &S::receiver_waits),
        field::NoState("costs", &S::costs, "the next lane that sends sets it"),
        field::Idle("is_closed", &S::is_closed),
        field::NoState("progress", &S::progress, "ConnectionTable::VisitConnection visits it"),
        field::Quiescent("sender", &S::sender, LaneIndex::kNone),
        field::Quiescent("receiver", &S::receiver, LaneIndex::kNone),
        field::NoState("sizes", &S::sizes, "the next message in a slot sets it"),
        field::Fixed("flag_latency_ps", &S::flag_latency_ps),
        field::NoState("receiver_free_ps", &S::receiver_free_ps, kWaits),
        field::NoState("receiver_tie", &S::receiver_tie, kWaits),
        field::NoState("time_ps", &S::time_ps, "ConnectionTable::VisitConnection visits it"));
  }
};
static_assert(sizeof(MessageSlots) == 128);

// Returns how far the first of two counters modulo 256 is ahead of the second.
inline uint8_t Ahead(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a - b); }

}  // namespace railyard
