// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/ns3/frame_reader.h"

#include <array>
#include <span>

#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr uint32_t kEthernetBytes = 14;
constexpr uint32_t kIpv6Bytes = 40;
constexpr uint32_t kPortsBytes = 4;
constexpr uint32_t kIpv4BytesMax = 60;
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;

using Bytes = std::span<const uint8_t>;

uint64_t Hash(uint64_t hash, Bytes bytes) {
  for (const uint8_t byte : bytes) hash = Mix64(hash ^ byte);
  return hash;
}

// Codepoints 01 and 10 of RFC 3168.
bool IsEct(uint8_t codepoint) { return (codepoint & 3) == 1 || (codepoint & 3) == 2; }

void ReadIpv4(Bytes packet, FrameHeaders& headers) {
  constexpr uint32_t kBytesMin = 20;
  if (packet.size() < kBytesMin) return;
  const uint32_t header_bytes = (packet[0] & 0xFu) * 4;
  const uint8_t protocol = packet[9];
  headers.is_ecn_capable = IsEct(packet[1]);
  headers.flow_hash = Hash(protocol, packet.subspan(12, 8));  // both addresses
  const bool is_fragment = (packet[6] & 0x3F) != 0 || packet[7] != 0;
  if (is_fragment || (protocol != kTcp && protocol != kUdp)) return;
  if (packet.size() < header_bytes + kPortsBytes) return;
  headers.flow_hash = Hash(headers.flow_hash, packet.subspan(header_bytes, kPortsBytes));
}

void ReadIpv6(Bytes packet, FrameHeaders& headers) {
  if (packet.size() < kIpv6Bytes) return;
  const uint8_t protocol = packet[6];
  headers.is_ecn_capable = IsEct(static_cast<uint8_t>(packet[1] >> 4));
  headers.flow_hash = Hash(protocol, packet.subspan(8, 32));  // both addresses
  if (protocol != kTcp && protocol != kUdp) return;
  if (packet.size() < kIpv6Bytes + kPortsBytes) return;
  headers.flow_hash = Hash(headers.flow_hash, packet.subspan(kIpv6Bytes, kPortsBytes));
}

}  // namespace

FrameHeaders ReadFrame(const ns3::Packet& frame) {
  std::array<uint8_t, kEthernetBytes + kIpv4BytesMax + kPortsBytes> begin{};
  const uint32_t copied = frame.CopyData(begin.data(), begin.size());
  FrameHeaders headers;
  headers.destination.CopyFrom(begin.data());
  const auto type = static_cast<uint16_t>(begin[12] << 8 | begin[13]);
  headers.flow_hash = type;
  if (copied <= kEthernetBytes) return headers;
  const Bytes packet(begin.data() + kEthernetBytes, copied - kEthernetBytes);
  if (type == kEtherTypeIpv4) ReadIpv4(packet, headers);
  if (type == kEtherTypeIpv6) ReadIpv6(packet, headers);
  return headers;
}

}  // namespace railyard
