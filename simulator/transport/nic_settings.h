// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

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

  int64_t LocalAckTimeoutPs() const { return int64_t{4'096'000} << ib_timeout; }
};

// Bytes a RoCE v2 packet has besides its payload: Ethernet 14 + FCS 4, preamble and inter-packet
// gap 20 (IEEE 802.3), IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand Architecture Specification, annex
// A17).
inline constexpr uint32_t kRoceHeaderBytes = 82;
inline constexpr uint32_t kAethBytes = 4;   // of an ACK or NACK
inline constexpr uint32_t kRethBytes = 16;  // of the first packet of an RDMA write
// NCCL's clear-to-send element (src/transport/net_ib, ncclIbSendFifo: 64 bytes).
inline constexpr uint32_t kClearToSendBytes = 64;

}  // namespace railyard
