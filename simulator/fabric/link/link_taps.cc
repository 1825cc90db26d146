// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/link/link_taps.h"

#include <utility>

#include "simulator/units/mix64.h"

namespace railyard {

void LinkTaps::Add(LinkId link, LinkTap tap) {
  tables_.links[link].arrival_flags |= LinkRecord::kObserved;
  taps_.emplace(link, std::move(tap));
}

void LinkTaps::Observe(const Packet& packet, std::optional<DropReason> loss) {
  if (tables_.settings.hashes_trajectory) {
    const uint64_t what = uint64_t{packet.link} << 32 | static_cast<uint64_t>(packet.kind);
    const uint64_t who = uint64_t{packet.flow} << 32 | packet.sequence;
    for (const uint64_t value : {static_cast<uint64_t>(tables_.NowPs()), what, who}) {
      trajectory_hash_ = Mix64(trajectory_hash_ ^ value);
    }
  }
  const auto [first, end] = taps_.equal_range(packet.link);
  for (auto tap = first; tap != end; ++tap) tap->second(packet, loss);
}

}  // namespace railyard
