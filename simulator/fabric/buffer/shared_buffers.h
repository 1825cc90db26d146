// SPDX-License-Identifier: GPL-2.0-only
// Decides which packets have room in the packet buffers of all switches and NICs, which ingress
// ports exceed their share, and whose senders must pause.
//
// This object keeps the accounts and decides. The network applies an Admission to ports and pause
// frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/shared_buffer.h"
#include "simulator/fabric/tables/buffer_settings.h"
#include "simulator/fabric/tables/fabric_tables.h"

namespace railyard {

class SharedBuffers {
 public:
  // Both must outlive this.
  SharedBuffers(FabricTables& tables, ChannelAccounts& accounts)
      : tables_(tables), accounts_(accounts) {}

  // --- Set-up: Reset(), then buffers, then links.
  void Reset();
  void Add(DeviceId device, const BufferSettings& settings, bool is_lossless);
  // Registers that the link's port sends out of its source's buffer, if the source has one.
  void AddEgress(LinkId link);
  void SetHeadroom(VirtualChannelId channel, uint32_t bytes) {
    pauses_[channel].headroom_bytes_max = bytes;
  }

  BufferId OfDevice(DeviceId device) const { return of_device_[device]; }
  BufferId OfSource(LinkId link) const { return of_source_[link]; }
  const SharedBuffer& operator[](BufferId buffer) const { return buffers_[buffer]; }
  const IngressPause& PauseOf(VirtualChannelId channel) const { return pauses_[channel]; }
  // Returns the bytes in the buffer that arrived by the link in class 0 or, with credits, the bytes
  // that were sent on it and whose credit has not returned. All departures are counted first.
  uint64_t AccountBytes(LinkId link);

  // --- Admission
  struct Admission {
    bool is_kept = true;            // false: the packet must be dropped and is in no account
    bool sends_xoff = false;        // the sender of its ingress port must pause
    bool becomes_eventful = false;  // all ports of the buffer must use departure events
    bool is_eventful = false;       // the packet's port must use them
  };
  // Decides for a packet that took its pool beyond the calm bytes. It is already in its ingress
  // account.
  Admission AdmitToLossless(const Packet& packet);
  // Decides for a packet that is about to join its link's queue and is in no account yet.
  Admission AdmitToLossy(const Packet& packet);
  // Decides whether a lossy buffer has room for `bytes` more that leave by `egress`. Changes no
  // account.
  Admission FindLossyRoom(LinkId egress, uint32_t bytes);

  // --- Leaving
  bool IsInLossyBuffer(const Packet& packet) const {
    if (packet.ingress == VirtualChannelId::kNone || (packet.flags & Packet::kCountedOut) != 0)
      return false;
    const IngressAccount& account = accounts_[packet.ingress];
    return !account.has_credits && !buffers_[account.buffer()].is_lossless;
  }
  void LeaveLossyBuffer(const Packet& packet) {
    if (IsInLossyBuffer(packet)) egress_bytes_[packet.link] -= packet.wire_bytes;
  }
  // Counts the departure of a packet from the device in which it waited.
  void CountOut(Packet& packet);
  // Counts all departures from the buffer, which makes its accounts exact.
  void Settle(BufferId buffer) { SettleLinks(buffers_[buffer].egress); }
  // Returns whether ports of the buffer currently have departure events.
  bool IsEventful(BufferId buffer) const { return buffers_[buffer].IsEventful(tables_.NowPs()); }
  // Calls visit(channel) for each channel of the buffer whose paused sender may resume.
  template <typename Visit>
  void ReleaseXoffs(BufferId buffer, Visit visit);

  // --- Partitions are simulated at other times than the rest of the switch's traffic. As long as
  // each stays within its share, the pool needs no decisions, and no partition affects another.
  class NotIndependent : public std::exception {};
  // Limits all traffic that is simulated at its usual time to half of the calm bytes, and reserves
  // a share of the other half for packets over those of the links that leave the device. Calls
  // nest; each needs its own EndIndependent() with the same links. Returns false without any effect
  // if the buffer is lossy, has departure events, already exceeds its half, or has no such share
  // left. If it exceeds its half later, admissions throw NotIndependent. A device without a buffer
  // is always independent.
  bool BeginIndependent(DeviceId device, std::span<const LinkId> links);
  void EndIndependent(DeviceId device, std::span<const LinkId> links);
  // Limits all traffic likewise while packets are simulated ahead over these links. They may use a
  // share of the other half, in proportion to the number of these links among all of the device.
  bool BeginAhead(DeviceId device, const std::vector<LinkId>& links);
  void EndAhead(DeviceId device);

 private:
  void SettleLinks(const std::vector<LinkId>& links);
  // Notes that settling the buffer has shown it to be within its bounds. Returns whether the buffer
  // becomes eventful.
  bool NoteVainSettle(BufferId buffer);
  void MakeEventful(BufferId buffer);
  void LimitIndependent(BufferId buffer);
  uint32_t LinksFrom(DeviceId device, std::span<const LinkId> links) const;
  void StayIndependent(BufferId buffer);

  FabricTables& tables_;
  ChannelAccounts& accounts_;
  std::vector<SharedBuffer> buffers_;   // the first stands for no buffer
  std::vector<IngressPause> pauses_;    // by virtual channel
  std::vector<uint32_t> egress_bytes_;  // by link: bytes at its port in a lossy buffer
  std::vector<BufferId> of_device_;
  std::vector<BufferId> of_source_;  // by link
};

template <typename Visit>
void SharedBuffers::ReleaseXoffs(BufferId id, Visit visit) {
  // All channels are visited, because the departure of any packet raises the threshold of all.
  std::vector<VirtualChannelId>& xoff = buffers_[id].xoff;
  for (size_t i = xoff.size(); i-- > 0;) {
    const VirtualChannelId ingress = xoff[i];
    IngressPause& pause = pauses_[ingress];
    Pool& pool = accounts_.pool(id);
    // The bytes in headroom become shared bytes, because the next XOFF needs an empty headroom.
    const int64_t pool_bytes = pool.bytes + pause.headroom_bytes;
    if (!buffers_[id].MayXon(accounts_[ingress].bytes, pool_bytes)) continue;
    pool.bytes = pool_bytes;
    pause.headroom_bytes = 0;
    pause.is_xoff = false;
    xoff[i] = xoff.back();
    xoff.pop_back();
    visit(ingress);
  }
}

}  // namespace railyard
