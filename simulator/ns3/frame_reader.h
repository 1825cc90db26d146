// SPDX-License-Identifier: GPL-2.0-only
// Reads from an Ethernet frame the headers that the fabric evaluates.
#pragma once

#include <cstdint>

#include <ns3/mac48-address.h>
#include <ns3/packet.h>

namespace railyard {

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86DD;

struct FrameHeaders {
  ns3::Mac48Address destination;
  // A hash of addresses, protocol and TCP or UDP ports; that of fragments is without ports. For
  // frames other than IP it is their type.
  uint64_t flow_hash = 0;
  bool is_ecn_capable = false;  // the IP header has ECT(0) or ECT(1)
};

FrameHeaders ReadFrame(const ns3::Packet& frame);

}  // namespace railyard
