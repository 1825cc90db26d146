// SPDX-License-Identifier: GPL-2.0-only
// Shares of a switch's buffer, for what is simulated at another time than what else is in it: while
// each stays within its share the pool stays calm (shared_buffer.h), and nothing that one does has
// anything to do with another.
#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

// Two links make one that takes part; what is simulated meanwhile is one more.
int64_t FabricNetwork::ShareApartBytes(uint32_t id) const {
  return buffers_[id].calm_bytes / (static_cast<int64_t>(buffers_[id].egress.size()) / 2 + 1);
}

void FabricNetwork::RestoreCalm(uint32_t id) {
  const SharedBuffer& buffer = buffers_[id];
  pools_[id].calm_bytes = buffer.apart > 0 ? ShareApartBytes(id) : buffer.calm_bytes;
}

// Buffers of links with credits are nobody else's.
bool FabricNetwork::BeginApart(DeviceId device) {
  const uint32_t id = buffer_of_device_[device];
  if (id == 0) return true;
  SharedBuffer& buffer = buffers_[id];
  if (!buffer.is_lossless || IsEventful(id) || pools_[id].bytes > ShareApartBytes(id)) return false;
  ++buffer.apart;
  RestoreCalm(id);
  return true;
}

void FabricNetwork::EndApart(DeviceId device) {
  const uint32_t id = buffer_of_device_[device];
  if (id == 0) return;
  --buffers_[id].apart;
  RestoreCalm(id);
}

bool FabricNetwork::BeginAside(DeviceId device) {
  if (!BeginApart(device)) return false;
  const uint32_t id = buffer_of_device_[device];
  if (id != 0) pools_[id].calm_bytes = pools_[id].bytes + ShareApartBytes(id);
  return true;
}

void FabricNetwork::EndAside(DeviceId device) { EndApart(device); }

}  // namespace railyard
