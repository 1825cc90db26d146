// SPDX-License-Identifier: GPL-2.0-only
// Defines the accounts of packet buffers, in bytes on the wire. A packet is in a device's buffer
// from its arrival to its departure, and counts for the link by which it arrived.
//
// In the short form a packet's departure has no event. It is counted when the packet arrives at the
// next device, so an account is an upper bound until a decision requires its exact value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/fabric/tables/buffer_settings.h"
#include "simulator/fabric/tables/fabric_ids.h"
#include "simulator/state/field_table.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds the account of one virtual channel, for the device at its end. It has only 8 bytes, because
// every packet's arrival accesses two accounts.
struct IngressAccount {
  static constexpr int kLimitBits = 30;
  static constexpr uint64_t kCreditBytesMax = (uint64_t{1} << kLimitBits) - 1;

  // With a buffer, this is the number of bytes of the channel's packets in it, headroom included.
  // With credits, it is the number of bytes that were sent and whose credit has not returned.
  uint32_t bytes = 0;
  uint32_t has_credits : 1 = 0;
  uint32_t is_waited_for : 1 = 0;  // the sender lacks credit
  uint32_t buffer_or_limit : kLimitBits = 0;

  static constexpr auto Fields() {
    using I = IngressAccount;
    return FieldTable(
        "ingress", field::Quiescent("bytes", &I::bytes),
        field::FixedBits<I>("has_credits", [](const I& account) { return account.has_credits; }),
        field::Bits<I>("is_waited_for", [](const I& account) { return !account.is_waited_for; }),
        field::FixedBits<I>("buffer_or_limit",
                            [](const I& account) { return account.buffer_or_limit; }));
  }

  BufferId buffer() const { return BufferId{buffer_or_limit}; }
  uint32_t credit_limit() const { return buffer_or_limit; }
  void set_buffer_or_limit(uint64_t value) {
    buffer_or_limit = static_cast<uint32_t>(value) & kCreditBytesMax;
  }
};
static_assert(sizeof(IngressAccount) == 8);

// Holds the fields of a buffer that every packet accesses.
struct Pool {
  int64_t bytes = 0;  // in the shared part
  // No decision is needed up to this many bytes, because no single account can exceed its share.
  int64_t calm_bytes = INT64_MAX;

  static constexpr auto Fields() {
    return FieldTable("pool", field::Quiescent("bytes", &Pool::bytes),
                      field::NoState("calm_bytes", &Pool::calm_bytes,
                                     "it decides how departures are counted, not what follows"));
  }
};

// Holds the fields of a virtual channel into a lossless buffer that are accessed only when the
// buffer fills.
struct IngressPause {
  uint32_t headroom_bytes = 0;
  uint32_t headroom_bytes_max = 0;
  bool is_xoff = false;

  static constexpr auto Fields() {
    return FieldTable("ingress pause", field::Idle("headroom_bytes", &IngressPause::headroom_bytes),
                      field::Fixed("headroom_bytes_max", &IngressPause::headroom_bytes_max),
                      field::Quiescent("is_xoff", &IngressPause::is_xoff));
  }
};

// Describes a buffer: its settings in the form that decisions need, and the links that use it.
struct SharedBuffer {
  static constexpr int64_t kAlphaOne = 128;

  DeviceId device{0};
  bool is_lossless = true;
  int64_t bytes_max = 0;
  int64_t alpha_128ths = 0;
  int64_t calm_bytes = 0;
  int64_t xon_offset_bytes = 0;
  std::vector<LinkId> egress;
  std::vector<VirtualChannelId> xoff;  // whose senders are paused
  // Departures have events until this time, because settling accounts again and again without a
  // result costs more than departure events.
  int64_t eventful_until_ps = 0;
  uint32_t vain_settles = 0;
  uint64_t dropped_packets = 0;
  // Calls of SharedBuffers::BeginIndependent() without their EndIndependent().
  uint32_t independent_count = 0;
  uint32_t independent_links = 0;  // of `egress`, for which they have reserved shares
  std::vector<LinkId> ahead;       // links of `egress` that are now simulated ahead

  static constexpr auto Fields() {
    constexpr std::string_view kForms = "it decides how departures are counted, not what follows";
    return FieldTable("buffer", field::Fixed("device", &SharedBuffer::device),
                      field::Fixed("is_lossless", &SharedBuffer::is_lossless),
                      field::Fixed("bytes_max", &SharedBuffer::bytes_max),
                      field::Fixed("alpha_128ths", &SharedBuffer::alpha_128ths),
                      field::Fixed("calm_bytes", &SharedBuffer::calm_bytes),
                      field::Fixed("xon_offset_bytes", &SharedBuffer::xon_offset_bytes),
                      field::Fixed("egress", &SharedBuffer::egress),
                      field::Idle("xoff", &SharedBuffer::xoff),
                      field::NoState("eventful_until_ps", &SharedBuffer::eventful_until_ps, kForms),
                      field::NoState("vain_settles", &SharedBuffer::vain_settles, kForms),
                      field::Fixed("dropped_packets", &SharedBuffer::dropped_packets),
                      field::Idle("independent_count", &SharedBuffer::independent_count),
                      field::Idle("independent_links", &SharedBuffer::independent_links),
                      field::Idle("ahead", &SharedBuffer::ahead));
  }

  // Returns whether an account of `bytes` exceeds its share when the pool holds `pool_bytes`.
  bool IsAbove(int64_t bytes, int64_t pool_bytes) const {
    return bytes * kAlphaOne > alpha_128ths * (bytes_max - pool_bytes);
  }
  // Returns whether the sender of an ingress port of `bytes` may resume.
  bool MayXon(int64_t bytes, int64_t pool_bytes) const {
    const int64_t threshold = alpha_128ths * (bytes_max - pool_bytes) / kAlphaOne;
    return bytes == 0 || bytes <= threshold - xon_offset_bytes;
  }
  bool IsEventful(int64_t now_ps) const { return !xoff.empty() || now_ps < eventful_until_ps; }
};
SharedBuffer MakeSharedBuffer(DeviceId device, const BufferSettings& settings, bool is_lossless);

// Describes a link and its reverse link for HeadroomBytes().
struct HeadroomCase {
  uint64_t rate_bps = 0;
  uint64_t reverse_rate_bps = 0;
  int64_t delay_ps = 0;                // of the link, forwarding at its end included
  int64_t reverse_propagation_ps = 0;  // of the pause frame
  int64_t pause_response_ps = 0;
  uint32_t mtu_bytes = 0;
};
// Returns the bytes that an ingress port must keep free so that nothing is lost after it has sent
// XOFF. Each phase is assumed to take its worst case:
//  - The frame waits until the largest packet has left the reverse link, and until two earlier
//    frames have left it.
//  - The frame travels, and the sender obeys it after `pause_response_ps`.
//  - The sender has just begun the largest packet.
//  - Everything on the cable, and in the pipeline behind it, arrives.
uint64_t HeadroomBytes(const HeadroomCase& hop);

// A pause frame takes this many bytes on the wire: 64 B, preamble and gap (IEEE 802.3 annex 31B).
inline constexpr uint32_t kPauseFrameBytes = 84;

}  // namespace railyard
