// SPDX-License-Identifier: GPL-2.0-only
// Pause frames and credits: what stops a port's data, and what lets it go on.
#include <algorithm>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

// A pause frame's event names what is paused.
constexpr uint32_t FrameOf(VirtualChannelId channel, bool xoff) {
  return 2 * channel + (xoff ? 0 : 1);
}
constexpr VirtualChannelId ChannelPausedBy(uint32_t frame) { return frame / 2; }
constexpr bool IsXoffFrame(uint32_t frame) { return frame % 2 == 0; }

}  // namespace

void FabricNetwork::SendXoff(VirtualChannelId ingress) {
  const uint32_t id = accounts_[ingress].buffer();
  SharedBuffer& buffer = buffers_[id];
  const bool was_eventful = IsEventful(id);
  pauses_[ingress].is_xoff = true;
  buffer.xoff.push_back(ingress);
  buffer.vain_settles = 0;
  if (!was_eventful) MakeEventful(id);
  SendPauseFrame(ingress, true);
}

void FabricNetwork::SendXons(uint32_t id) {
  // Every one of them, for the threshold of all rises when any packet leaves.
  std::vector<VirtualChannelId>& xoff = buffers_[id].xoff;
  for (size_t i = xoff.size(); i-- > 0;) {
    const VirtualChannelId ingress = xoff[i];
    IngressPause& pause = pauses_[ingress];
    // What is in the headroom is taken into the shared part, for the next XOFF relies on it.
    const int64_t pool_bytes = pools_[id].bytes + pause.headroom_bytes;
    if (!buffers_[id].MayXon(accounts_[ingress].bytes, pool_bytes)) continue;
    pools_[id].bytes = pool_bytes;
    pause.headroom_bytes = 0;
    pause.is_xoff = false;
    xoff[i] = xoff.back();
    xoff.pop_back();
    SendPauseFrame(ingress, false);
  }
}

void FabricNetwork::SendPauseFrame(VirtualChannelId ingress, bool xoff) {
  IngressPause& pause = pauses_[ingress];
  const LinkId reverse = graph_->ReverseLink(LinkOf(ingress));
  const int64_t start_ps = std::max(ServiceEndPs(reverse), pause.last_frame_end_ps);
  pause.last_frame_end_ps = start_ps + TransmissionPs(reverse, kPauseFrameBytes);
  const int64_t effect_ps =
      pause.last_frame_end_ps + graph_->link(reverse).propagation_ps + pause_response_ps_;
  const uint32_t frame = FrameOf(ingress, xoff);
  ++(xoff ? counters_.xoff_frames : counters_.xon_frames);
  engine_->ScheduleFabric(effect_ps, event_order::kPauseFrame, frame, frame);
  pause_sent_({engine_->NowPs(), LinkOf(ingress), xoff});
}

void FabricNetwork::HandlePauseFrame(void* self, uint32_t frame) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const VirtualChannelId channel = ChannelPausedBy(frame);
  const LinkId id = network.LinkOf(channel);
  const uint32_t lossless_class = network.LosslessClassOf(channel);
  Port& port = network.PortOf(id);
  const uint8_t bit = Port::BitOf(lossless_class);
  if (IsXoffFrame(frame)) {
    port.paused_by_frame |= bit;
  } else {
    port.paused_by_frame &= static_cast<uint8_t>(~bit);
  }
  if (!port.is_in_storm) network.SetPaused(id, lossless_class, IsXoffFrame(frame));
}

void FabricNetwork::SetPauseStorm(LinkId id, bool storms) {
  Port& port = PortOf(id);
  if (port.is_in_storm == storms) return;
  port.is_in_storm = storms;
  for (uint32_t of = 0; of < ClassCountOf(id); ++of) {
    if ((port.paused_by_frame & Port::BitOf(of)) == 0) SetPaused(id, of, storms);
  }
}

bool FabricNetwork::IsPaused(LinkId id) const {
  const uint32_t port = port_of_link_[id];
  return port != Packet::kNone && ports_[port].paused_classes != 0;
}

void FabricNetwork::SetPaused(LinkId id, uint32_t lossless_class, bool paused) {
  Port& port = PortOf(id);
  const uint8_t bit = Port::BitOf(lossless_class);
  if (paused) {
    if (IsShort(id)) LeaveShortForm(id);
    port.paused_classes |= bit;
    BeginHold(id, port, lossless_class);
    return;
  }
  port.paused_classes &= static_cast<uint8_t>(~bit);
  const int64_t paused_ps = engine_->NowPs() - port.data[lossless_class].held_since_ps;
  port.paused_ps += paused_ps;
  counters_.pfc_pause_ps += paused_ps;
  EndHold(id, port);
}

int64_t FabricNetwork::PauseUpToNowPs(const Port& port) const {
  int64_t paused_ps = 0;
  for (uint8_t left = port.paused_classes; left != 0; left &= static_cast<uint8_t>(left - 1)) {
    paused_ps += engine_->NowPs() - port.data[std::countr_zero(left)].held_since_ps;
  }
  return paused_ps;
}

int64_t FabricNetwork::PausedPs() const {
  int64_t paused_ps = counters_.pfc_pause_ps;
  for (const Port& port : ports_) paused_ps += PauseUpToNowPs(port);
  return paused_ps;
}

void FabricNetwork::WakeForCredit(VirtualChannelId channel) {
  const LinkId id = LinkOf(channel);
  const uint32_t lossless_class = LosslessClassOf(channel);
  Port& port = PortOf(id);
  if (!HasCredit(channel, packets_[port.data[lossless_class].first].wire_bytes)) return;
  port.starved_classes &= static_cast<uint8_t>(~Port::BitOf(lossless_class));
  accounts_[channel].is_waited_for = 0;
  EndHold(id, port);
}

void FabricNetwork::BeginHold(LinkId id, Port& port, uint32_t lossless_class) {
  is_held_[id] = 1;
  DataQueue& queue = port.data[lossless_class];
  queue.held_since_ps = engine_->NowPs();
  if (queue.check_pending) return;
  queue.check_pending = true;
  const VirtualChannelId channel = ChannelOf(id, lossless_class);
  engine_->ScheduleFabric(queue.held_since_ps + storm_threshold_ps_, event_order::kHoldCheck,
                          channel, channel);
}

void FabricNetwork::EndHold(LinkId id, Port& port) {
  is_held_[id] = port.held_classes() != 0 ? 1 : 0;
  Resume(id, port);
  if (is_held_[id] != 0) return;
  const DeviceKind source = graph_->device(graph_->link_source(id)).kind;
  if (source == DeviceKind::kNic || source == DeviceKind::kGpu) TellReleased(id);
}

void FabricNetwork::TellReleased(LinkId link) {
  for (auto sink = sinks_.begin(); sink != sinks_.end(); ++sink) {
    const bool is_told = std::find(sinks_.begin(), sink, *sink) != sink;
    if (*sink != nullptr && !is_told) (*sink)->OnLinkReleased(link);
  }
}

}  // namespace railyard
