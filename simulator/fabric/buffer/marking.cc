// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/buffer/marking.h"

#include <algorithm>

#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr double kUnit64 = 0x1p-64;  // a 64-bit draw to [0, 1)

// Returns the time to send, at `rate_bps`, the scaled threshold of a port with the nominal rate
// `nominal_bps`; `bytes` is the threshold at the reference rate.
int64_t ThresholdPs(uint64_t bytes, uint64_t nominal_bps, uint64_t rate_bps) {
  const auto bits = static_cast<unsigned __int128>(bytes) * 8 * nominal_bps / kEcnReferenceRateBps;
  return static_cast<int64_t>(bits * kPsPerSecond / rate_bps);
}

}  // namespace

int64_t Marking::StartPs(LinkId link) const {
  const BufferSettings* const settings = SettingsOf(link);
  if (settings == nullptr || !settings->ecn_enabled) return kNeverPs;
  return ThresholdPs(settings->ecn_kmin_bytes, tables_.graph->link(link).rate_bps,
                     tables_.rates_bps[link]);
}

void Marking::SetThreshold(LinkId link) {
  tables_.links[link].mark_above =
      static_cast<uint32_t>(std::min<int64_t>(StartPs(link) >> kMarkUnitShift, UINT32_MAX));
}

bool Marking::Mark(Packet& packet, int64_t backlog_ps) {
  if (!IsEcnCapable(packet)) return false;
  const LinkId link = packet.link;
  const int64_t start_ps = StartPs(link);
  if (backlog_ps <= start_ps) return false;
  const BufferSettings& settings = *SettingsOf(link);
  const int64_t full_ps = ThresholdPs(settings.ecn_kmax_bytes, tables_.graph->link(link).rate_bps,
                                      tables_.rates_bps[link]);
  if (backlog_ps <= full_ps) {
    ++tables_.counters.draws;
    // Keyed by the packet, so that no other packet's fate changes this one's.
    const uint64_t which = uint64_t{packet.flow} << 32 | packet.sequence;
    const uint64_t where = uint64_t{link} << 8 | (packet.flags & Packet::kRetransmitted);
    const uint64_t draw = Mix64(Mix64(Mix64(tables_.settings.seed) ^ where) ^ which);
    const double share = settings.ecn_pmax * static_cast<double>(backlog_ps - start_ps) /
                         static_cast<double>(full_ps - start_ps);
    if (static_cast<double>(draw) * kUnit64 >= share) return false;
  }
  packet.flags |= Packet::kEcnMarked;
  ++tables_.counters.ecn_marked;
  return true;
}

}  // namespace railyard
