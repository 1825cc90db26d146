// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/frames.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <boost/crc.hpp>

namespace railyard {
namespace {

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIpBytes = 20;
constexpr size_t kUdpBytes = 8;
constexpr size_t kLrhBytes = 8;
constexpr uint32_t kIcrcBytes = 4;
constexpr uint32_t kVcrcBytes = 2;
constexpr uint8_t kUdp = 17;
constexpr uint8_t kTcp = 6;
constexpr uint16_t kRoceUdpPort = 4791;
// Differentiated services that operators commonly give RoCE and its CNPs. ECN: RFC 3168.
constexpr uint8_t kDataDscp = 26;
constexpr uint8_t kCnpDscp = 48;
constexpr uint8_t kEcnCapable = 2;
constexpr uint8_t kCongestionExperienced = 3;

// Big-endian, as networks have it.
void Put8(std::string& frame, uint32_t value) { frame.push_back(static_cast<char>(value)); }
void Put16(std::string& frame, uint32_t value) {
  Put8(frame, value >> 8);
  Put8(frame, value);
}
void Put24(std::string& frame, uint32_t value) {
  Put8(frame, value >> 16);
  Put16(frame, value);
}
void Put32(std::string& frame, uint32_t value) {
  Put16(frame, value >> 16);
  Put16(frame, value);
}
void Put64(std::string& frame, uint64_t value) {
  Put32(frame, static_cast<uint32_t>(value >> 32));
  Put32(frame, static_cast<uint32_t>(value));
}
void Set16(std::string& frame, size_t at, uint32_t value) {
  frame[at] = static_cast<char>(value >> 8);
  frame[at + 1] = static_cast<char>(value);
}

// RFC 1071: over these bytes, and `sum` of others.
uint16_t InternetChecksum(std::string_view bytes, uint32_t sum) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    sum += i % 2 == 0 ? uint32_t{byte} << 8 : byte;
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// Locally administered, and private.
void PutMac(std::string& frame, uint32_t device) {
  Put16(frame, 0x0200);
  Put32(frame, device);
}
uint32_t AddressOf(uint32_t nic) { return 10u << 24 | ((nic + 1) & 0xFFFFFF); }

void PutEthernetAndIp(std::string& frame, const FrameEnds& ends, uint8_t protocol, uint8_t dscp,
                      uint8_t ecn, size_t bytes) {
  PutMac(frame, ends.link_target);
  PutMac(frame, ends.link_source);
  Put16(frame, 0x0800);
  Put8(frame, 0x45);
  Put8(frame, static_cast<uint32_t>(dscp << 2 | ecn));
  Put16(frame, static_cast<uint32_t>(kIpBytes + bytes));
  Put16(frame, 0);
  Put16(frame, 0x4000);  // not to be fragmented
  Put8(frame, 64);
  Put8(frame, protocol);
  Put16(frame, 0);
  Put32(frame, AddressOf(ends.source_nic));
  Put32(frame, AddressOf(ends.destination_nic));
  const std::string_view ip = std::string_view(frame).substr(kEthernetBytes, kIpBytes);
  Set16(frame, kEthernetBytes + 10, InternetChecksum(ip, 0));
}

bool HasReth(RdmaHeaders::Opcode opcode) {
  return opcode == RdmaHeaders::Opcode::kWriteFirst || opcode == RdmaHeaders::Opcode::kWriteOnly;
}

// BTH and the headers behind it.
std::string TransportOf(const RdmaHeaders& headers) {
  using Opcode = RdmaHeaders::Opcode;
  std::string bytes;
  Put8(bytes, static_cast<uint32_t>(headers.opcode));
  Put8(bytes, 0x40);                                       // path migrated, no padding, version 0
  Put16(bytes, 0xFFFF);                                    // the default partition
  Put8(bytes, headers.opcode == Opcode::kCnp ? 0x40 : 0);  // BECN
  Put24(bytes, headers.queue_pair);
  Put8(bytes, headers.asks_for_ack ? 0x80 : 0);
  Put24(bytes, headers.sequence);
  if (HasReth(headers.opcode)) {
    Put64(bytes, headers.address);
    Put32(bytes, headers.key);
    Put32(bytes, headers.message_bytes);
  }
  if (headers.opcode == Opcode::kAcknowledge) {
    Put8(bytes, headers.is_nak ? 0x60 : 0x1F);  // a sequence error; no end-to-end credits
    Put24(bytes, headers.messages);
  }
  if (headers.opcode == Opcode::kUnreliableSendOnlyWithImmediate) Put32(bytes, headers.immediate);
  if (headers.opcode == Opcode::kCnp) bytes.append(16, '\0');
  return bytes;
}

// The lengths of what follows a frame's headers, and of what is kept of the whole.
struct FrameLengths {
  uint32_t payload_bytes = 0;
  uint32_t end_bytes = 0;
  uint32_t snap_bytes = 0;
};

// Cuts off a frame that has its headers. `end` appends what follows the payload; nothing is
// appended to a frame that is cut off before it.
template <typename End>
Frame Complete(std::string headers, const FrameLengths& lengths, const End& end) {
  Frame frame{.bytes = std::move(headers)};
  const auto before_end_bytes = static_cast<uint32_t>(frame.bytes.size() + lengths.payload_bytes);
  frame.length_bytes = before_end_bytes + lengths.end_bytes;
  if (before_end_bytes < lengths.snap_bytes) {
    frame.bytes.resize(before_end_bytes);
    end(frame.bytes);
  }
  frame.bytes.resize(std::min(frame.length_bytes, lengths.snap_bytes));
  return frame;
}

void PutLittleEndian(std::string& frame, uint32_t value, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) Put8(frame, value >> (8 * i));
}

// Appends the invariant CRC: fields that a switch may change count as ones.
void PutIcrc(std::string& frame, std::string masked, size_t bth) {
  masked[bth + 4] = '\xFF';
  boost::crc_32_type crc;
  crc.process_bytes(masked.data(), masked.size());
  PutLittleEndian(frame, crc.checksum(), 4);
}

}  // namespace

Frame RoceFrame(const FrameEnds& ends, uint16_t source_port, const RdmaHeaders& headers,
                uint32_t snap_bytes) {
  const bool is_cnp = headers.opcode == RdmaHeaders::Opcode::kCnp;
  const uint8_t ecn = headers.is_marked ? kCongestionExperienced : kEcnCapable;
  const std::string transport = TransportOf(headers);
  const size_t udp_bytes = kUdpBytes + transport.size() + headers.payload_bytes + kIcrcBytes;
  std::string frame;
  PutEthernetAndIp(frame, ends, kUdp, is_cnp ? kCnpDscp : kDataDscp, is_cnp ? uint8_t{0} : ecn,
                   udp_bytes);
  Put16(frame, source_port);
  Put16(frame, kRoceUdpPort);
  Put16(frame, static_cast<uint32_t>(udp_bytes));
  Put16(frame, 0);  // none
  frame += transport;
  return Complete(
      std::move(frame),
      {.payload_bytes = headers.payload_bytes, .end_bytes = kIcrcBytes, .snap_bytes = snap_bytes},
      [](std::string& whole) {
        std::string masked = std::string(kLrhBytes, '\xFF') + whole.substr(kEthernetBytes);
        for (const size_t at : std::initializer_list<size_t>{1, 8, 10, 11})
          masked[kLrhBytes + at] = '\xFF';  // TOS, TTL, checksum
        for (const size_t at : std::initializer_list<size_t>{6, 7})
          masked[kLrhBytes + kIpBytes + at] = '\xFF';
        PutIcrc(whole, std::move(masked), kLrhBytes + kIpBytes + kUdpBytes);
      });
}

Frame InfinibandFrame(const FrameEnds& ends, const RdmaHeaders& headers, uint32_t snap_bytes) {
  const std::string transport = TransportOf(headers);
  const size_t words = (kLrhBytes + transport.size() + headers.payload_bytes + kIcrcBytes + 3) / 4;
  std::string frame;
  Put8(frame, 0);     // virtual lane 0, version 0
  Put8(frame, 0x02);  // service level 0; a BTH is next
  Put16(frame, ends.destination_nic + 1);
  Put16(frame, static_cast<uint32_t>(words) & 0x7FF);
  Put16(frame, ends.source_nic + 1);
  frame += transport;
  const auto put_crcs = [](std::string& whole) {
    std::string masked = whole;
    masked[0] = static_cast<char>(masked[0] | '\xF0');  // the virtual lane
    PutIcrc(whole, std::move(masked), kLrhBytes);
    boost::crc_optimal<16, 0x100B, 0xFFFF, 0xFFFF, true, true> crc;
    crc.process_bytes(whole.data(), whole.size());
    PutLittleEndian(whole, crc.checksum(), kVcrcBytes);
  };
  return Complete(std::move(frame),
                  {.payload_bytes = headers.payload_bytes,
                   .end_bytes = kIcrcBytes + kVcrcBytes,
                   .snap_bytes = snap_bytes},
                  put_crcs);
}

Frame TcpFrame(const FrameEnds& ends, const TcpHeaders& headers, uint32_t snap_bytes) {
  const bool has_block = headers.block_begin != headers.block_end;
  std::string tcp;
  Put16(tcp, headers.source_port);
  Put16(tcp, headers.destination_port);
  Put32(tcp, headers.sequence);
  Put32(tcp, headers.acknowledged);
  const uint32_t words = has_block ? 11 : 8;
  Put8(tcp, words << 4);
  Put8(tcp, headers.is_last ? 0x18 : 0x10);  // ACK, and PSH
  Put16(tcp, headers.window);
  Put16(tcp, 0);
  Put16(tcp, 0);
  Put32(tcp, 0x0101080A);  // two of padding, timestamps of 10 bytes
  Put32(tcp, headers.timestamp);
  Put32(tcp, headers.echo);
  if (has_block) {
    Put32(tcp, 0x0101050A);
    Put32(tcp, headers.block_begin);
    Put32(tcp, headers.block_end);
  }
  // The pseudo header: addresses, protocol and length. Payload is zeros, which add nothing.
  const size_t tcp_bytes = tcp.size() + headers.payload_bytes;
  auto sum = static_cast<uint32_t>(kTcp + tcp_bytes);
  for (const uint32_t nic : {ends.source_nic, ends.destination_nic}) {
    sum += (AddressOf(nic) >> 16) + (AddressOf(nic) & 0xFFFF);
  }
  Set16(tcp, 16, InternetChecksum(tcp, sum));
  std::string frame;
  PutEthernetAndIp(frame, ends, kTcp, 0, headers.is_marked ? kCongestionExperienced : kEcnCapable,
                   tcp_bytes);
  return Complete(frame + tcp, {.payload_bytes = headers.payload_bytes, .snap_bytes = snap_bytes},
                  [](std::string& /*whole*/) {});
}

std::string ErfHeader(int64_t time_ns, const Frame& frame) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  constexpr uint8_t kInfiniband = 21;
  constexpr uint8_t kVaryingLength = 4;
  std::string header;
  // Seconds in the upper half, their 2^32nd parts in the lower.
  PutLittleEndian(header, static_cast<uint32_t>((time_ns % kNsPerSecond << 32) / kNsPerSecond), 4);
  PutLittleEndian(header, static_cast<uint32_t>(time_ns / kNsPerSecond), 4);
  Put8(header, kInfiniband);
  Put8(header, kVaryingLength);
  Put16(header, static_cast<uint32_t>(kErfHeaderBytes + frame.bytes.size()));
  Put16(header, 0);  // none lost
  Put16(header, frame.length_bytes);
  return header;
}

}  // namespace railyard
