// SPDX-License-Identifier: GPL-2.0-only
// Makes the bytes of frames on the wires between servers: Ethernet with RoCE v2 or TCP, and
// InfiniBand. Payload is zeros. Frames have no preamble and no Ethernet frame check sequence; all
// other checksums and CRCs are correct. Functions return the first `snap_bytes` of a frame.
#pragma once

#include <cstdint>
#include <string>

namespace railyard {

struct Frame {
  std::string bytes;          // as many as were requested
  uint32_t length_bytes = 0;  // of the whole frame
};

// Describes the path of a frame by numbers of devices of the fabric: from NIC to NIC, and over one
// link on the way.
struct FrameEnds {
  uint32_t source_nic = 0;
  uint32_t destination_nic = 0;
  uint32_t link_source = 0;
  uint32_t link_target = 0;
};

// Holds the headers of a packet of a queue pair (InfiniBand Architecture Specification 1.7, chapter
// 9; RoCE v2: annex A17).
struct RdmaHeaders {
  enum class Opcode : uint8_t {
    kWriteFirst = 0x06,
    kWriteMiddle = 0x07,
    kWriteLast = 0x08,
    kWriteOnly = 0x0A,
    kAcknowledge = 0x11,
    kUnreliableSendOnlyWithImmediate = 0x25,
    kCnp = 0x81,  // RoCE v2 only
  };
  Opcode opcode = Opcode::kWriteOnly;
  bool is_marked = false;  // congestion experienced
  bool asks_for_ack = false;
  uint32_t queue_pair = 0;  // of the destination; 24 bits, like the next field
  uint32_t sequence = 0;
  // RETH, in the first packet of a write.
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t message_bytes = 0;
  // AETH, in an acknowledgement: whether it is a NAK for a sequence error, and the number of
  // complete messages.
  bool is_nak = false;
  uint32_t messages = 0;
  uint32_t immediate = 0;  // of an unreliable send
  uint32_t payload_bytes = 0;
};

// These return a frame with these headers, on Ethernet with RoCE v2 and on InfiniBand.
Frame RoceFrame(const FrameEnds& ends, uint16_t source_port, const RdmaHeaders& headers,
                uint32_t snap_bytes);
Frame InfinibandFrame(const FrameEnds& ends, const RdmaHeaders& headers, uint32_t snap_bytes);

// Holds the headers of a segment with timestamps (RFC 9293, RFC 7323) and at most one block of
// selective acknowledgement (RFC 2018).
struct TcpHeaders {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint32_t sequence = 0;
  uint32_t acknowledged = 0;
  bool is_marked = false;
  bool is_last = false;  // of an application's write
  uint16_t window = 0;   // as in the header
  uint32_t timestamp = 0;
  uint32_t echo = 0;
  uint32_t block_begin = 0;  // both are equal without a block
  uint32_t block_end = 0;
  uint32_t payload_bytes = 0;
};

Frame TcpFrame(const FrameEnds& ends, const TcpHeaders& headers, uint32_t snap_bytes);

// ErfHeader() returns the header of the record in which an InfiniBand frame is stored (Endace's
// Extensible Record Format, type 21).
inline constexpr uint32_t kErfHeaderBytes = 16;
std::string ErfHeader(int64_t time_ns, const Frame& frame);

}  // namespace railyard
