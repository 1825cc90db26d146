// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/connections/stripe_layout.h"

#include <algorithm>

#include "simulator/units/mix64.h"

namespace railyard {

uint32_t StripeLayout::DeviceCount(GpuIndex source_gpu, GpuIndex destination_gpu) const {
  if (link_aggregation_) return 1;
  const size_t ports = std::max(PortsOfNic(source_gpu).size(), PortsOfNic(destination_gpu).size());
  return static_cast<uint32_t>(ports);
}

std::vector<LinkId> StripeLayout::PortsOfNic(GpuIndex gpu) const {
  return graph_.WiresOfNic(graph_.NicOfGpu(graph_.gpus()[gpu]).value());
}

std::optional<PortPins> StripeLayout::PinsOf(GpuIndex source_gpu, GpuIndex destination_gpu,
                                             uint32_t device) const {
  if (link_aggregation_) return std::nullopt;
  const std::vector<LinkId> source = PortsOfNic(source_gpu);
  const std::vector<LinkId> destination = PortsOfNic(destination_gpu);
  return PortPins{.first = source[device % source.size()],
                  .last = graph_.ReverseLink(destination[device % destination.size()])};
}

uint64_t StripeLayout::EntropyOf(uint64_t connection_entropy, uint32_t place) {
  return place == 0 ? connection_entropy : Mix64(connection_entropy ^ place);
}

std::vector<PairEnds> StripeLayout::EndsOf(GpuIndex source_gpu, GpuIndex destination_gpu,
                                           uint64_t entropy) const {
  const uint32_t count = QueuePairCount(source_gpu, destination_gpu);
  const uint32_t devices = DeviceCount(source_gpu, destination_gpu);
  std::vector<PairEnds> ends;
  for (uint32_t place = 0; place < count; ++place) {
    ends.push_back(EndsBetween(graph_, source_gpu, destination_gpu, EntropyOf(entropy, place)));
    if (count > 1) ends.back().data_pins = PinsOf(source_gpu, destination_gpu, place % devices);
  }
  return ends;
}

}  // namespace railyard
