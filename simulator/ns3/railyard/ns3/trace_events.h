// SPDX-License-Identifier: GPL-2.0-only
// Defines the arguments of the trace sources of FabricSimulation and FabricLink. Texts are valid as
// long as the fabric exists.
#pragma once

#include <cstdint>
#include <string_view>

#include <ns3/nstime.h>

namespace railyard {

// Describes a collective: the calls of all of its ranks together.
struct CollectiveEvent {
  uint32_t collective = 0;  // index into Result::collectives
  std::string_view kind{};  // "AllReduce", "SendRecv", …
  std::string_view job{};
  uint64_t bytes = 0;  // as nccl-tests counts them
  uint32_t rank_count = 0;
  ns3::Time start{};  // of its first rank
  ns3::Time end{};    // of its last rank; 0 in CollectiveStart
};

// Describes a rank's call of a collective.
struct CallEvent {
  uint32_t rank = 0;
  uint32_t collective = 0;
  ns3::Time start{};
  ns3::Time end{};
};

// Describes a packet on a link.
struct PacketEvent {
  std::string_view link{};    // "server1/nic3>leaf3"; empty if a packet was lost without a link
  std::string_view kind{};    // "NETWORK_DATA", "ACK", "ETHERNET_FRAME", …
  std::string_view reason{};  // of a loss: "LINK_DOWN", "BUFFER_FULL", …; empty if not lost
  uint32_t flow = 0;          // number of a queue or, for other kinds of packet, of a flow
  uint32_t sequence = 0;
  uint32_t wire_bytes = 0;
  uint32_t payload_bytes = 0;  // of a collective
  bool is_marked = false;      // congestion experienced
  bool is_retransmitted = false;
  // When its last bit left the link's port, and when it is at the link's far end; 0 for a packet
  // that waits for the link or was dropped in front of it.
  ns3::Time sent{};
  ns3::Time received{};
};

struct LinkStateEvent {
  std::string_view link{};
  bool is_up = true;
};

// Describes a pause frame that pauses or resumes the sender of a link.
struct PauseEvent {
  std::string_view link{};
  bool is_xoff = true;
};

// Describes an expired retransmission timer of a NIC's queue pair, or a CNP that the NIC sends.
struct QueuePairEvent {
  std::string_view nic{};
  uint32_t queue_pair = 0;
};

// Describes a new rate that a queue pair's congestion control has set.
struct RateEvent {
  std::string_view nic{};
  uint32_t queue_pair = 0;
  uint64_t rate_bps = 0;  // UINT64_MAX: line rate
};

}  // namespace railyard
