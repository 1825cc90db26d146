// SPDX-License-Identifier: GPL-2.0-only
// Shares of a switch's buffer, for what is simulated at another time than what else is in it: while
// each stays within its share the pool as a whole is calm (shared_buffer.h), and nothing that one
// does has anything to do with another.
#include <algorithm>
#include <iterator>

#include "simulator/fabric/fabric_network.h"

namespace railyard {

// Half of what is calm is for what goes on as ever, half for what is ahead or has been, by links.
void FabricNetwork::LimitApart(uint32_t id) {
  SharedBuffer& buffer = buffers_[id];
  pools_[id].calm_bytes = buffer.apart > 0 ? buffer.calm_bytes / 2 : buffer.calm_bytes;
}

// Buffers of links with credits are nobody else's.
bool FabricNetwork::BeginApart(DeviceId device) {
  const uint32_t id = buffer_of_device_[device];
  if (id == kNoBuffer) return true;
  SharedBuffer& buffer = buffers_[id];
  if (!buffer.is_lossless || IsEventful(id) || pools_[id].bytes > buffer.calm_bytes / 2) {
    return false;
  }
  ++buffer.apart;
  LimitApart(id);
  return true;
}

void FabricNetwork::EndApart(DeviceId device) {
  const uint32_t id = buffer_of_device_[device];
  if (id == kNoBuffer) return;
  --buffers_[id].apart;
  LimitApart(id);
}

bool FabricNetwork::BeginAhead(DeviceId device, const std::vector<LinkId>& links) {
  if (!BeginApart(device)) return false;
  const uint32_t id = buffer_of_device_[device];
  if (id == kNoBuffer) return true;
  SharedBuffer& buffer = buffers_[id];
  std::ranges::copy_if(links, std::back_inserter(buffer.ahead),
                       [&](LinkId link) { return graph_->link_source(link) == device; });
  pools_[id].calm_bytes = pools_[id].bytes + buffer.calm_bytes *
                                                 static_cast<int64_t>(buffer.ahead.size()) /
                                                 (2 * static_cast<int64_t>(buffer.egress.size()));
  return true;
}

void FabricNetwork::EndAhead(DeviceId device) {
  const uint32_t id = buffer_of_device_[device];
  if (id != kNoBuffer) buffers_[id].ahead.clear();
  EndApart(device);
}

// The bound of what is in the buffer has left its share.
void FabricNetwork::StayApart(uint32_t id) {
  const SharedBuffer& buffer = buffers_[id];
  SettleLinks(buffer.ahead.empty() ? buffer.egress : buffer.ahead);
  if (pools_[id].bytes > pools_[id].calm_bytes) throw NotApart();
}

}  // namespace railyard
