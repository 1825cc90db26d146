// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/buffer/shared_buffers.h"

#include <algorithm>

namespace railyard {
namespace {

// A buffer whose bounds cross a threshold again and again although the exact figures do not takes
// departure events for a while.
constexpr uint32_t kVainSettlesMax = 4;
constexpr int64_t kEventfulPs = 8 * kPsPerUs;

}  // namespace

void SharedBuffers::Reset() {
  pauses_.assign(accounts_.size(), {});
  egress_bytes_.assign(tables_.links.size(), 0);
  buffers_.assign(1, {});
  of_device_.assign(tables_.graph->device_count(), kNoBuffer);
  of_source_.assign(tables_.links.size(), kNoBuffer);
}

void SharedBuffers::Add(DeviceId device, const BufferSettings& settings, bool is_lossless) {
  of_device_[device] = BufferId{buffers_.size()};
  buffers_.push_back(MakeSharedBuffer(device, settings, is_lossless));
  // A lossy buffer decides at its egress queues, for every packet.
  accounts_.AddPool(
      {.bytes = 0, .calm_bytes = is_lossless ? buffers_.back().calm_bytes : INT64_MAX});
}

void SharedBuffers::AddEgress(LinkId link) {
  const BufferId id = of_device_[tables_.graph->link_source(link)];
  of_source_[link] = id;
  if (id == kNoBuffer) return;
  buffers_[id].egress.push_back(link);
  if (buffers_[id].is_lossless) return;
  tables_.links[link].send_flags |= LinkRecord::kTailDrop;
  tables_.links[link].arrival_flags |= LinkRecord::kFromLossyBuffer;
}

uint64_t SharedBuffers::AccountBytes(LinkId link) {
  const IngressAccount& account = accounts_[FirstChannelOf(link)];
  if (!account.has_credits) Settle(account.buffer());
  return account.bytes;
}

SharedBuffers::Admission SharedBuffers::AdmitToLossless(const Packet& packet) {
  const uint32_t bytes = packet.wire_bytes;
  IngressAccount& account = accounts_[packet.ingress];
  const BufferId id = account.buffer();
  SharedBuffer& buffer = buffers_[id];
  Admission admission;
  if (buffer.independent_count > 0) {
    StayIndependent(id);
    return admission;
  }
  Pool& pool = accounts_.pool(id);
  IngressPause& pause = pauses_[packet.ingress];
  if (pause.is_xoff) {
    pool.bytes -= bytes;
    if (pause.headroom_bytes + bytes > pause.headroom_bytes_max) {
      account.bytes -= bytes;
      ++buffer.dropped_packets;
      admission.is_kept = false;
      return admission;
    }
    pause.headroom_bytes += bytes;
  } else if (buffer.IsAbove(account.bytes, pool.bytes)) {
    const bool was_eventful = IsEventful(id);
    if (!was_eventful) Settle(id);
    if (buffer.IsAbove(account.bytes, pool.bytes)) {
      pause.is_xoff = true;
      buffer.xoff.push_back(packet.ingress);
      buffer.vain_settles = 0;
      if (!was_eventful) MakeEventful(id);
      admission.becomes_eventful = !was_eventful;
      admission.sends_xoff = true;
    } else {
      admission.becomes_eventful = NoteVainSettle(id);
    }
  }
  admission.is_eventful = IsEventful(id);
  if (!admission.is_eventful) pool.calm_bytes = buffer.calm_bytes;
  return admission;
}

SharedBuffers::Admission SharedBuffers::FindLossyRoom(LinkId egress, uint32_t bytes) {
  const BufferId id = of_source_[egress];
  SharedBuffer& buffer = buffers_[id];
  const auto has_room = [&] {
    const int64_t pool_bytes = accounts_.pool(id).bytes;
    return !buffer.IsAbove(int64_t{egress_bytes_[egress]} + bytes, pool_bytes) &&
           pool_bytes + bytes <= buffer.bytes_max;
  };
  Admission admission;
  if (has_room()) return admission;
  admission.is_kept = false;
  if (!IsEventful(id)) {
    Settle(id);
    admission.is_kept = has_room();
    if (admission.is_kept) admission.becomes_eventful = NoteVainSettle(id);
  }
  if (!admission.is_kept) ++buffer.dropped_packets;
  return admission;
}

SharedBuffers::Admission SharedBuffers::AdmitToLossy(const Packet& packet) {
  if (!IsInLossyBuffer(packet)) return {};
  Admission admission = FindLossyRoom(packet.link, packet.wire_bytes);
  if (!admission.is_kept) return admission;
  egress_bytes_[packet.link] += packet.wire_bytes;
  admission.is_eventful = IsEventful(of_source_[packet.link]);
  return admission;
}

void SharedBuffers::CountOut(Packet& packet) {
  if (packet.ingress == VirtualChannelId::kNone || (packet.flags & Packet::kCountedOut) != 0)
    return;
  IngressAccount& account = accounts_[packet.ingress];
  if (account.has_credits) return;
  LeaveLossyBuffer(packet);
  packet.flags |= Packet::kCountedOut;
  account.bytes -= packet.wire_bytes;
  // The last bytes to come, those in the headroom, are taken to leave first.
  IngressPause& pause = pauses_[packet.ingress];
  const uint32_t from_headroom = std::min<uint32_t>(pause.headroom_bytes, packet.wire_bytes);
  pause.headroom_bytes -= from_headroom;
  accounts_.pool(account.buffer()).bytes -= packet.wire_bytes - from_headroom;
}

void SharedBuffers::SettleLinks(const std::vector<LinkId>& links) {
  const int64_t now_ps = tables_.NowPs();
  for (const LinkId egress : links) {
    tables_.ForEachTimed(tables_.links[egress], [&](PacketId index) {
      Packet& packet = tables_.packets[index];
      if (tables_.DeparturePs(packet) <= now_ps) CountOut(packet);
    });
  }
}

bool SharedBuffers::NoteVainSettle(BufferId id) {
  SharedBuffer& buffer = buffers_[id];
  if (++buffer.vain_settles < kVainSettlesMax) return false;
  buffer.vain_settles = 0;
  buffer.eventful_until_ps = tables_.NowPs() + kEventfulPs;
  MakeEventful(id);
  return true;
}

// Makes the buffer examine every packet from now on.
void SharedBuffers::MakeEventful(BufferId id) {
  if (buffers_[id].is_lossless) accounts_.pool(id).calm_bytes = -1;
}

}  // namespace railyard
