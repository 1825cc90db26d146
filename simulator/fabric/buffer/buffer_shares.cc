// SPDX-License-Identifier: GPL-2.0-only
// Partitions are simulated at another time than all else that shares a switch's buffer. While each
// stays within its share of the buffer, the pool as a whole is calm (shared_buffer.h) and none has
// an effect on another.
#include <algorithm>
#include <iterator>

#include "simulator/fabric/buffer/shared_buffers.h"

namespace railyard {

// Half of the calm bytes are for the links that are simulated as usual; the other half is divided
// among all links, for those that are simulated ahead. A partition of which two collectives overlap
// has the share of its links twice.
void SharedBuffers::LimitIndependent(BufferId id) {
  SharedBuffer& buffer = buffers_[id];
  accounts_.pool(id).calm_bytes =
      buffer.independent_count > 0 ? buffer.calm_bytes / 2 : buffer.calm_bytes;
}

// A device without a shared buffer has links with credits, whose buffers nothing else uses.
bool SharedBuffers::BeginIndependent(DeviceId device, std::span<const LinkId> links) {
  const BufferId id = of_device_[device];
  if (id == kNoBuffer) return true;
  SharedBuffer& buffer = buffers_[id];
  const uint32_t reserved = buffer.independent_links + LinksFrom(device, links);
  if (!buffer.is_lossless || IsEventful(id) || accounts_.pool(id).bytes > buffer.calm_bytes / 2 ||
      reserved > buffer.egress.size()) {
    return false;
  }
  ++buffer.independent_count;
  buffer.independent_links = reserved;
  LimitIndependent(id);
  return true;
}

void SharedBuffers::EndIndependent(DeviceId device, std::span<const LinkId> links) {
  const BufferId id = of_device_[device];
  if (id == kNoBuffer) return;
  --buffers_[id].independent_count;
  buffers_[id].independent_links -= LinksFrom(device, links);
  LimitIndependent(id);
}

bool SharedBuffers::BeginAhead(DeviceId device, const std::vector<LinkId>& links) {
  if (!BeginIndependent(device, {})) return false;
  const BufferId id = of_device_[device];
  if (id == kNoBuffer) return true;
  SharedBuffer& buffer = buffers_[id];
  std::ranges::copy_if(links, std::back_inserter(buffer.ahead),
                       [&](LinkId link) { return tables_.graph->link_source(link) == device; });
  accounts_.pool(id).calm_bytes =
      accounts_.pool(id).bytes + buffer.calm_bytes * static_cast<int64_t>(buffer.ahead.size()) /
                                     (2 * static_cast<int64_t>(buffer.egress.size()));
  return true;
}

void SharedBuffers::EndAhead(DeviceId device) {
  const BufferId id = of_device_[device];
  if (id != kNoBuffer) buffers_[id].ahead.clear();
  EndIndependent(device, {});
}

uint32_t SharedBuffers::LinksFrom(DeviceId device, std::span<const LinkId> links) const {
  return static_cast<uint32_t>(std::ranges::count_if(
      links, [&](LinkId link) { return tables_.graph->link_source(link) == device; }));
}

// The upper bound of the bytes in the buffer is above its share: makes it exact before giving up.
void SharedBuffers::StayIndependent(BufferId id) {
  const SharedBuffer& buffer = buffers_[id];
  SettleLinks(buffer.ahead.empty() ? buffer.egress : buffer.ahead);
  if (accounts_.pool(id).bytes > accounts_.pool(id).calm_bytes) throw NotIndependent();
}

}  // namespace railyard
