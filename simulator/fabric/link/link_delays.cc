// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/link/link_delays.h"

#include <algorithm>

namespace railyard {

std::optional<DelayLine::Hold> DelayLine::Take(PacketId index, const Packet& packet,
                                               int64_t now_ps) {
  int64_t release_ps = now_ps;
  if (extra_delay_ps_) release_ps += extra_delay_ps_(packet);
  if (!late_.empty()) release_ps = std::max(release_ps, late_.back().release_ps);
  if (release_ps == now_ps && late_.empty()) return std::nullopt;
  const bool is_first = late_.empty() || late_.back().release_ps != release_ps;
  late_.push_back({index, release_ps});
  return Hold{release_ps, is_first};
}

std::optional<PacketId> DelayLine::PopDue(int64_t now_ps) {
  if (late_.empty() || late_.front().release_ps > now_ps) return std::nullopt;
  const PacketId index = late_.front().packet;
  late_.pop_front();
  return index;
}

}  // namespace railyard
