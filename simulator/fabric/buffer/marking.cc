// SPDX-License-Identifier: GPL-2.0-only
// Explicit congestion notification: RED on the queue of the moment, as a packet joins it. The
// queue is measured in the time it takes to send.
#include "simulator/fabric/fabric_network.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr double kUnit64 = 0x1p-64;  // a 64-bit draw to [0, 1)

// To send, at `rate_bps`, what a threshold of `bytes` at the reference rate is on a port that is
// nominally of `nominal_bps`.
int64_t ThresholdPs(uint64_t bytes, uint64_t nominal_bps, uint64_t rate_bps) {
  const auto bits = static_cast<unsigned __int128>(bytes) * 8 * nominal_bps / kEcnReferenceRateBps;
  return static_cast<int64_t>(bits * kPsPerSecond / rate_bps);
}

}  // namespace

int64_t FabricNetwork::MarkingStartPs(LinkId id) const {
  const ns3::Ptr<Switch>& source = switches_[graph_->link_source(id)];
  if (source == nullptr || !source->buffer_settings().ecn_enabled) return kNeverPs;
  return ThresholdPs(source->buffer_settings().ecn_kmin_bytes, graph_->link(id).rate_bps,
                     rates_bps_[id]);
}

void FabricNetwork::SetMarking(LinkId id) {
  links_[id].mark_above =
      static_cast<uint32_t>(std::min<int64_t>(MarkingStartPs(id) >> kMarkUnitShift, UINT32_MAX));
}

void FabricNetwork::MarkAbove(Packet& packet, int64_t backlog_ps) {
  if (packet.kind != PacketKind::kRdmaWrite) return;
  const LinkId id = packet.link;
  const int64_t start_ps = MarkingStartPs(id);
  if (backlog_ps <= start_ps) return;
  const BufferSettings& settings = switches_[graph_->link_source(id)]->buffer_settings();
  const int64_t full_ps =
      ThresholdPs(settings.ecn_kmax_bytes, graph_->link(id).rate_bps, rates_bps_[id]);
  if (backlog_ps <= full_ps) {
    ++counters_.draws;
    // Keyed by the packet, so that no other packet's fate changes this one's.
    const uint64_t which = uint64_t{packet.flow} << 32 | packet.sequence;
    const uint64_t where = uint64_t{id} << 8 | (packet.flags & Packet::kRetransmitted);
    const uint64_t draw = Mix64(Mix64(Mix64(seed_) ^ where) ^ which);
    const double share = settings.ecn_pmax * static_cast<double>(backlog_ps - start_ps) /
                         static_cast<double>(full_ps - start_ps);
    if (static_cast<double>(draw) * kUnit64 >= share) return;
  }
  packet.flags |= Packet::kEcnMarked;
  ++counters_.ecn_marked;
  ecn_marked_({engine_->NowPs(), &packet, id});
}

}  // namespace railyard
