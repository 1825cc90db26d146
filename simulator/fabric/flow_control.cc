// SPDX-License-Identifier: GPL-2.0-only
// Pause frames and credits: what stops a port's data, and what lets it go on.
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

// A pause frame's event names the link that is paused.
constexpr uint32_t FrameOf(LinkId link, bool xoff) { return 2 * link + (xoff ? 0 : 1); }
constexpr LinkId LinkOf(uint32_t frame) { return frame / 2; }
constexpr bool IsXoffFrame(uint32_t frame) { return frame % 2 == 0; }

}  // namespace

void FabricNetwork::SendXoff(LinkId ingress) {
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
  std::vector<LinkId>& xoff = buffers_[id].xoff;
  for (size_t i = xoff.size(); i-- > 0;) {
    const LinkId ingress = xoff[i];
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

void FabricNetwork::SendPauseFrame(LinkId ingress, bool xoff) {
  IngressPause& pause = pauses_[ingress];
  const LinkId reverse = graph_->ReverseLink(ingress);
  const int64_t start_ps = std::max(ServiceEndPs(reverse), pause.last_frame_end_ps);
  pause.last_frame_end_ps = start_ps + TransmissionPs(reverse, kPauseFrameBytes);
  const int64_t effect_ps =
      pause.last_frame_end_ps + graph_->link(reverse).propagation_ps + pause_response_ps_;
  const uint32_t frame = FrameOf(ingress, xoff);
  ++(xoff ? counters_.xoff_frames : counters_.xon_frames);
  engine_->ScheduleFabric(effect_ps, EventClass::kPauseFrame, frame, frame);
  pause_sent_({engine_->NowPs(), ingress, xoff});
}

void FabricNetwork::HandlePauseFrame(void* self, uint32_t frame) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const LinkId id = LinkOf(frame);
  Port& port = network.PortOf(id);
  port.is_paused_by_frame = IsXoffFrame(frame);
  if (!port.is_in_storm) network.SetPaused(id, port.is_paused_by_frame);
}

void FabricNetwork::SetPauseStorm(LinkId id, bool storms) {
  Port& port = PortOf(id);
  if (port.is_in_storm == storms) return;
  port.is_in_storm = storms;
  if (!port.is_paused_by_frame) SetPaused(id, storms);
}

bool FabricNetwork::IsPaused(LinkId id) const {
  const uint32_t port = port_of_link_[id];
  return port != Packet::kNone && ports_[port].is_paused;
}

void FabricNetwork::SetPaused(LinkId id, bool paused) {
  Port& port = PortOf(id);
  if (paused) {
    if (IsShort(id)) LeaveShortForm(id);
    port.is_paused = true;
    BeginHold(id, port);
    return;
  }
  port.is_paused = false;
  const int64_t paused_ps = engine_->NowPs() - port.held_since_ps;
  port.paused_ps += paused_ps;
  counters_.pfc_pause_ps += paused_ps;
  EndHold(id);
  Resume(id, port);
  Release(id);
}

void FabricNetwork::WakeForCredit(LinkId id) {
  Port& port = PortOf(id);
  if (!HasCredit(id, packets_[port.data.first].wire_bytes)) return;
  port.lacks_credit = false;
  accounts_[id].is_waited_for = 0;
  EndHold(id);
  Resume(id, port);
  Release(id);
}

void FabricNetwork::BeginHold(LinkId id, Port& port) {
  is_held_[id] = 1;
  port.held_since_ps = engine_->NowPs();
  if (port.check_pending) return;
  port.check_pending = true;
  engine_->ScheduleFabric(port.held_since_ps + storm_threshold_ps_, EventClass::kHoldCheck, id, id);
}

void FabricNetwork::EndHold(LinkId id) { is_held_[id] = 0; }

void FabricNetwork::Release(LinkId id) {
  if (is_held_[id] != 0) return;
  const DeviceKind source = graph_->device(graph_->link_source(id)).kind;
  if (source == DeviceKind::kNic || source == DeviceKind::kGpu) sink_->OnLinkReleased(id);
}

}  // namespace railyard
