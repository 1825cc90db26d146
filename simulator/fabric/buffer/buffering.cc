// SPDX-License-Identifier: GPL-2.0-only
// Which packets find room in the buffer of the device they came to.
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

// A buffer whose bounds cross a threshold again and again although the exact figures do not takes
// departure events for a while.
constexpr uint32_t kVainSettlesMax = 4;
constexpr int64_t kEventfulPs = 8 * kPsPerUs;

}  // namespace

bool FabricNetwork::AdmitToLossless(uint32_t index) {
  const Packet& packet = packets_[index];
  const VirtualChannelId ingress = packet.ingress;
  const LinkId egress = packet.link;
  const uint32_t bytes = packet.wire_bytes;
  IngressAccount& account = accounts_[ingress];
  const uint32_t id = account.buffer();
  SharedBuffer& buffer = buffers_[id];
  if (buffer.apart > 0) {
    StayApart(id);
    return true;
  }
  Pool& pool = pools_[id];
  IngressPause& pause = pauses_[ingress];
  if (pause.is_xoff) {
    pool.bytes -= bytes;
    if (pause.headroom_bytes + bytes > pause.headroom_bytes_max) {
      account.bytes -= bytes;
      ++buffer.dropped_packets;
      Drop(index, DropReason::kHeadroomFull, LinkOf(ingress));
      return false;
    }
    pause.headroom_bytes += bytes;
  } else if (buffer.IsAbove(account.bytes, pool.bytes)) {
    if (!IsEventful(id)) {
      Settle(id);
      if (!buffer.IsAbove(account.bytes, pool.bytes)) NoteVainSettle(id);
    }
    if (buffer.IsAbove(account.bytes, pool.bytes)) SendXoff(ingress);
  }
  if (!IsEventful(id)) {
    pool.calm_bytes = buffer.calm_bytes;
  } else if (IsShort(egress)) {
    LeaveShortForm(egress);
  }
  return true;
}

// Whether a lossy buffer has room for so many bytes more that leave by `egress`.
bool FabricNetwork::HasLossyRoom(LinkId egress, uint32_t bytes) {
  const uint32_t id = buffer_of_source_[egress];
  const SharedBuffer& buffer = buffers_[id];
  const auto has_room = [&] {
    const int64_t pool_bytes = pools_[id].bytes;
    return !buffer.IsAbove(int64_t{egress_bytes_[egress]} + bytes, pool_bytes) &&
           pool_bytes + bytes <= buffer.bytes_max;
  };
  if (has_room()) return true;
  if (IsEventful(id)) return false;
  Settle(id);
  if (!has_room()) return false;
  NoteVainSettle(id);
  return true;
}

bool FabricNetwork::AdmitToLossy(uint32_t index) {
  const Packet& packet = packets_[index];
  if (!IsInLossyBuffer(packet)) return true;
  const LinkId egress = packet.link;
  const uint32_t bytes = packet.wire_bytes;
  if (!HasLossyRoom(egress, bytes)) {
    DropForLackOfRoom(index, egress);
    return false;
  }
  egress_bytes_[egress] += bytes;
  if (IsEventful(buffer_of_source_[egress]) && IsShort(egress)) LeaveShortForm(egress);
  return true;
}

bool FabricNetwork::FindsRoomAtNic(uint32_t index) {
  const Packet& packet = packets_[index];
  if (packet.hop == packet.hop_count || ClassOf(packet.kind) == TrafficClass::kControl) return true;
  const LinkId egress = packet.next_link;
  if (HasLossyRoom(egress, packet.wire_bytes)) return true;
  DropForLackOfRoom(index, egress);
  return false;
}

void FabricNetwork::DropForLackOfRoom(uint32_t index, LinkId egress) {
  ++buffers_[buffer_of_source_[egress]].dropped_packets;
  Drop(index, DropReason::kBufferFull, egress);
}

bool FabricNetwork::IsInLossyBuffer(const Packet& packet) const {
  if (packet.ingress == Packet::kNone || (packet.flags & Packet::kCountedOut) != 0) return false;
  const IngressAccount& account = accounts_[packet.ingress];
  return !account.has_credits && !buffers_[account.buffer()].is_lossless;
}

void FabricNetwork::CountOut(Packet& packet) {
  if (packet.ingress == Packet::kNone || (packet.flags & Packet::kCountedOut) != 0) return;
  IngressAccount& account = accounts_[packet.ingress];
  if (account.has_credits) return;
  LeaveLossyBuffer(packet);
  packet.flags |= Packet::kCountedOut;
  account.bytes -= packet.wire_bytes;
  // What came last, into the headroom, is taken to leave first.
  IngressPause& pause = pauses_[packet.ingress];
  const uint32_t from_headroom = std::min<uint32_t>(pause.headroom_bytes, packet.wire_bytes);
  pause.headroom_bytes -= from_headroom;
  pools_[account.buffer()].bytes -= packet.wire_bytes - from_headroom;
}

void FabricNetwork::Settle(uint32_t id) { SettleLinks(buffers_[id].egress); }

void FabricNetwork::SettleLinks(const std::vector<LinkId>& links) {
  const int64_t now_ps = engine_->NowPs();
  for (const LinkId egress : links) {
    ForEachTimed(links_[egress], [&](uint32_t index) {
      if (DeparturePs(packets_[index]) <= now_ps) CountOut(packets_[index]);
    });
  }
}

void FabricNetwork::NoteVainSettle(uint32_t id) {
  SharedBuffer& buffer = buffers_[id];
  if (++buffer.vain_settles < kVainSettlesMax) return;
  buffer.vain_settles = 0;
  buffer.eventful_until_ps = engine_->NowPs() + kEventfulPs;
  MakeEventful(id);
}

void FabricNetwork::MakeEventful(uint32_t id) {
  const SharedBuffer& buffer = buffers_[id];
  if (buffer.is_lossless) pools_[id].calm_bytes = -1;  // every packet is looked at
  for (const LinkId egress : buffer.egress) {
    if (IsShort(egress) && links_[egress].busy_until_ps > engine_->NowPs()) LeaveShortForm(egress);
  }
}

}  // namespace railyard
