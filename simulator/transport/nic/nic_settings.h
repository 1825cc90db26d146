// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ns3/object-factory.h>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Bytes a RoCE v2 packet has besides its payload: Ethernet 14 + FCS 4, preamble and inter-packet
// gap 20 (IEEE 802.3), IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand Architecture Specification, annex
// A17).
inline constexpr uint32_t kRoceHeaderBytes = 82;
// The same of a packet in an InfiniBand subnet: LRH 8, BTH 12, ICRC 4, VCRC 2 (InfiniBand
// Architecture Specification 1.7, chapters 5 and 7; rates are those of data, after coding).
inline constexpr uint32_t kInfinibandHeaderBytes = 26;
inline constexpr uint32_t kAethBytes = 4;       // of an ACK or NACK
inline constexpr uint32_t kRethBytes = 16;      // of the first packet of an RDMA write
inline constexpr uint32_t kImmediateBytes = 4;  // ImmDt, of an unreliable send
inline constexpr uint32_t kCnpBytes = 16;       // reserved, after the BTH of a CNP (annex A17)
// NCCL's clear-to-send element (src/transport/net_ib, ncclIbSendFifo: 64 bytes).
inline constexpr uint32_t kClearToSendBytes = 64;

// Bytes a TCP segment has besides its payload: Ethernet 38 as above, IPv4 20, TCP 20, timestamps 12
// (RFC 7323, with padding). What counts to the MTU: all but Ethernet's.
inline constexpr uint32_t kTcpHeaderBytes = 90;
inline constexpr uint32_t kTcpHeaderBytesInMtu = 52;
inline constexpr uint32_t kSackBytes = 12;  // of an ACK with one block (RFC 2018, with padding)

// What a receiver does with packets beyond a gap.
enum class Recovery : uint8_t {
  kGoBackN,          // drops them; the sender starts again at the gap
  kSelectiveRepeat,  // keeps them; the sender fills the gap alone
};

// How NICs send and acknowledge: what the attributes of railyard::Nic set, as the code that runs
// per packet reads it.
struct NicSettings {
  uint32_t mtu_bytes = 4096;  // path MTU, payload of a full packet; NCCL uses the ports' active MTU
  // Bytes a queue pair may have sent and not yet seen acknowledged: twice 400 Gb/s x 5 us, above
  // the round trip of a loaded two-tier fabric.
  uint64_t window_bytes = 512u << 10;
  uint32_t ack_every_packets = 4;  // an ACK at least so often, and for every message's last packet
  // Local ACK timeout 4.096 us x 2^N and how often a request is tried again (InfiniBand
  // Architecture Specification 1.7, 9.7.5.1.3; NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT).
  uint32_t ib_timeout = 20;
  uint32_t ib_retry_cnt = 7;
  // Packets a queue sends in its turn, before the next one's: the arbiter's quantum. 1 is the
  // fairest; more makes fewer events.
  uint32_t burst_packets = 1;
  Recovery recovery = Recovery::kGoBackN;
  // A packet up to so far beyond a missing one is kept and does not make it a lost one: for fabrics
  // that reorder. At most 63.
  uint32_t reorder_tolerance_packets = 0;
  // A CongestionControl with its attributes; none while no type is set.
  ns3::ObjectFactory congestion_control{};
  // A receiver sends a queue pair's next CNP no sooner (Zhu et al., SIGCOMM 2015, section 3.1:
  // N = 50 us).
  int64_t cnp_interval_ps = 50 * kPsPerUs;

  // The ports of a NIC are one bonded device (IEEE 802.1AX): a queue pair uses the port that its
  // hash says, and another where a cable is down. Else each port is a device with an address of its
  // own, to which its queue pairs are bound.
  bool link_aggregation = true;

  // Queue pairs are TCP streams (tcp_stream.h); the payload of a full packet is then what the MTU
  // leaves. Of the above, what InfiniBand alone has (its timer and retries, recovery, CNPs) is not
  // looked at.
  bool is_tcp = false;

  // The links are InfiniBand's, not Ethernet's.
  bool is_infiniband = false;

  uint32_t HeaderBytes() const {
    if (is_tcp) return kTcpHeaderBytes;
    return is_infiniband ? kInfinibandHeaderBytes : kRoceHeaderBytes;
  }
  int64_t LocalAckTimeoutPs() const { return int64_t{4'096'000} << ib_timeout; }
  uint32_t WindowPackets() const {
    return static_cast<uint32_t>(std::max<uint64_t>(1, window_bytes / mtu_bytes));
  }
};

// NICs that are set up otherwise than the rest of a fabric's. The packets of a queue pair are alike
// at both its ends, so the MTU, the recovery, the link layer and whether ports are bonded are as
// everywhere; `settings` has all of it.
struct NicVariant {
  std::vector<DeviceId> nics;
  NicSettings settings;
};
// Variants of one run.
inline constexpr size_t kNicVariantsMax = 255;

}  // namespace railyard
