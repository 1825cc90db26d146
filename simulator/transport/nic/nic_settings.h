// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ns3/object-factory.h>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A RoCE v2 packet has these bytes besides its payload: Ethernet 14 + FCS 4, preamble and
// inter-packet gap 20 (IEEE 802.3), IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand Architecture
// Specification, annex A17).
inline constexpr uint32_t kRoceHeaderBytes = 82;
// A packet in an InfiniBand subnet has these bytes besides its payload: LRH 8, BTH 12, ICRC 4, VCRC
// 2 (InfiniBand Architecture Specification 1.7, chapters 5 and 7; rates are those of data, after
// coding).
inline constexpr uint32_t kInfinibandHeaderBytes = 26;
inline constexpr uint32_t kAethBytes = 4;       // of an ACK or NACK
inline constexpr uint32_t kRethBytes = 16;      // of the first packet of an RDMA write
inline constexpr uint32_t kImmediateBytes = 4;  // ImmDt, of an unreliable send
inline constexpr uint32_t kCnpBytes = 16;       // reserved, after the BTH of a CNP (annex A17)
// NCCL's clear-to-send element has this size (src/transport/net_ib, ncclIbSendFifo: 64 bytes).
inline constexpr uint32_t kClearToSendBytes = 64;

// A TCP segment has these bytes besides its payload: Ethernet 38 as above, IPv4 20, TCP 20,
// timestamps 12 (RFC 7323, with padding). All but Ethernet's count towards the MTU.
inline constexpr uint32_t kTcpHeaderBytes = 90;
inline constexpr uint32_t kTcpHeaderBytesInMtu = 52;
inline constexpr uint32_t kSackBytes = 12;  // of an ACK with one block (RFC 2018, with padding)

// The largest window of a queue pair is a quarter of its 24-bit packet sequence numbers, of which
// half may be in flight (InfiniBand Architecture Specification 1.7, chapter 9).
inline constexpr uint64_t kWindowPacketsMax = 1u << 22;

// Names the receiver's treatment of packets beyond a gap.
enum class Recovery : uint8_t {
  kGoBackN,          // drops them; the sender starts again at the gap
  kSelectiveRepeat,  // keeps them; the sender fills the gap alone
};

// Holds the attributes of railyard::Nic for sending and acknowledging, in a form that code can read
// for every packet.
struct NicSettings {
  uint32_t mtu_bytes = 4096;  // path MTU, payload of a full packet; NCCL uses the ports' active MTU
  // The limit of the unacknowledged bytes of a queue pair. The default is twice 400 Gb/s x 5 us,
  // more than the round trip of a loaded two-tier fabric needs.
  uint64_t window_bytes = 512u << 10;
  uint32_t ack_every_packets = 4;  // an ACK at least so often, and for every message's last packet
  // The local ACK timeout is 4.096 us x 2^N; the count limits how often a request is retried
  // (InfiniBand Architecture Specification 1.7, 9.7.5.1.3; NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT).
  uint32_t ib_timeout = 20;
  uint32_t ib_retry_cnt = 7;
  // The number of packets that a queue sends in its turn, which is the arbiter's quantum. 1 is the
  // fairest; larger values cause fewer events.
  uint32_t burst_packets = 1;
  Recovery recovery = Recovery::kGoBackN;
  // On fabrics that reorder, a packet this far beyond a missing one is kept, and the missing packet
  // does not yet count as lost. The value is at most 63.
  uint32_t reorder_tolerance_packets = 0;
  // The type and attributes of the CongestionControl; there is none while no type is set.
  ns3::ObjectFactory congestion_control{};
  // The minimum time between two CNPs that a receiver sends for a queue pair (Zhu et al., SIGCOMM
  // 2015, section 3.1: N = 50 us).
  int64_t cnp_interval_ps = 50 * kPsPerUs;

  // If true, the ports of a NIC are one bonded device (IEEE 802.1AX): a hash chooses a queue pair's
  // port, and another port replaces one whose cable is down. If false, each port is a device with
  // its own address, to which its queue pairs are bound.
  bool link_aggregation = true;

  // If true, queue pairs are TCP streams (tcp_stream.h), and the headers reduce the payload of a
  // full packet to fit the MTU. Settings that only InfiniBand has (timer and retries, recovery,
  // CNPs) are then ignored.
  bool is_tcp = false;

  // If true, the links are InfiniBand links instead of Ethernet links.
  bool is_infiniband = false;

  uint32_t HeaderBytes() const {
    if (is_tcp) return kTcpHeaderBytes;
    return is_infiniband ? kInfinibandHeaderBytes : kRoceHeaderBytes;
  }
  int64_t LocalAckTimeoutPs() const { return int64_t{4'096'000} << ib_timeout; }
  // A smaller window is full before its packets earn an ACK.
  uint64_t WindowBytesMin() const { return uint64_t{ack_every_packets} * mtu_bytes; }
  uint64_t WindowBytesMax() const { return kWindowPacketsMax * mtu_bytes; }
  uint32_t WindowPackets() const {
    return static_cast<uint32_t>(std::max<uint64_t>(1, window_bytes / mtu_bytes));
  }
};

// Describes NICs whose settings differ from those of the rest of the fabric. `settings` is
// complete. The MTU, the recovery, the reorder tolerance, the link layer and the bonding of ports
// must be the same as elsewhere, because both ends of a queue pair need to agree on them.
struct NicVariant {
  std::vector<DeviceId> nics;
  NicSettings settings;
};
// One run may have at most this many variants.
inline constexpr size_t kNicVariantsMax = 255;

}  // namespace railyard
