// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/load_store/nvlink_groups.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/load_store/load_store_transport.h"

namespace railyard {

std::vector<NvlinkGroups::Plane> NvlinkGroups::PlanesOf(std::span<const GpuIndex> gpus) const {
  std::vector<Plane> planes;
  if (gpus.size() < 2) return planes;
  std::vector<DeviceId> devices;
  for (const GpuIndex gpu : gpus) devices.push_back(graph_.gpus()[gpu]);
  for (const DeviceId nvswitch : graph_.SharedNvSwitches(devices)) {
    Plane plane{.up_links = {}, .down_links = {}, .lanes = UINT32_MAX};
    for (const DeviceId gpu : devices) {
      const LinkId up = graph_.FindLink(gpu, nvswitch).value();
      const LinkId down = graph_.FindLink(nvswitch, gpu).value();
      plane.up_links.push_back(up);
      plane.down_links.push_back(down);
      plane.lanes = std::min({plane.lanes, graph_.link(up).lanes, graph_.link(down).lanes});
    }
    planes.push_back(std::move(plane));
  }
  return planes;
}

LinkId NvlinkGroups::UpLink(GpuIndex gpu, const Plane& plane) const {
  const DeviceId nvswitch = graph_.link_source(plane.down_links.front());
  const auto link = graph_.FindLink(graph_.gpus()[gpu], nvswitch);
  SIM_CHECK(link.has_value(), "a GPU that uses a group of another island");
  return *link;
}

FlowId NvlinkGroups::Add(PacketKind kind, GpuIndex head_gpu, std::vector<Receiver> receivers,
                         const std::vector<Plane>& planes) {
  SIM_CHECK(!planes.empty(), "a group of GPUs that no NVSwitch joins");
  std::vector<LinkId> up_links;
  for (const Plane& plane : planes) {
    up_links.insert(up_links.end(), plane.up_links.begin(), plane.up_links.end());
    up_links.push_back(UpLink(head_gpu, plane));
  }
  const auto gpu_count = static_cast<uint16_t>(planes.front().up_links.size());
  const FlowId id{network_.reduction().AddSwitchGroup(gpu_count, up_links)};
  SIM_CHECK(id == groups_.size(), "a group of NVSwitches that is not this transport's");
  Group group;
  group.kind = kind;
  group.receivers = std::move(receivers);
  groups_.push_back(std::move(group));
  return id;
}

FlowId NvlinkGroups::AddFlow(FlowId group, GpuIndex gpu, PathRef first_path,
                             const std::vector<Plane>& planes) {
  std::vector<uint32_t> weights;
  for (const Plane& plane : planes) weights.push_back(plane.lanes);
  return flows_.OpenOfGroup(
      {.kind = groups_[group].kind, .group = group, .gpu = gpu, .first_path = first_path}, weights);
}

// Adds, for each plane, the link up and then all links down.
PathRef NvlinkGroups::AddFanOut(GpuIndex head_gpu, const std::vector<Plane>& planes) {
  PathRef first;
  for (const Plane& plane : planes) {
    std::vector<LinkId> links = {UpLink(head_gpu, plane)};
    links.insert(links.end(), plane.down_links.begin(), plane.down_links.end());
    const PathRef path = network_.AddPath(links);
    if (&plane == &planes.front()) first = path;
  }
  return first;
}

FlowId NvlinkGroups::OpenMulticast(GpuIndex head_gpu, const std::vector<Member>& members) {
  std::vector<GpuIndex> gpus;
  std::vector<Receiver> receivers;
  for (const Member& member : members) {
    gpus.push_back(member.gpu);
    receivers.push_back({.user = member.sink});
  }
  const auto planes = PlanesOf(gpus);
  const FlowId id = Add(PacketKind::kNvlinkMulticast, head_gpu, std::move(receivers), planes);
  groups_[id].first_flow = AddFlow(id, head_gpu, AddFanOut(head_gpu, planes), planes);
  return id;
}

FlowId NvlinkGroups::OpenReduce(const SinkRef& sink, GpuIndex head_gpu,
                                const std::vector<GpuIndex>& members) {
  const auto planes = PlanesOf(members);
  const FlowId id = Add(PacketKind::kNvlinkOperand, head_gpu, {{.user = sink}}, planes);
  groups_[id].request_path = AddFanOut(head_gpu, planes).first;
  for (size_t member = 0; member < members.size(); ++member) {
    PathRef first_path;
    for (const Plane& plane : planes) {
      const LinkId down = graph_.ReverseLink(UpLink(head_gpu, plane));
      const PathRef path = network_.AddPath({plane.up_links[member], down});
      if (&plane == &planes.front()) first_path = path;
    }
    const FlowId flow = AddFlow(id, members[member], first_path, planes);
    if (member == 0) groups_[id].first_flow = flow;
  }
  groups_[id].pieces_sent.resize(members.size());
  return id;
}

void NvlinkGroups::StartOver(FlowId id) {
  const Group& group = groups_[id];
  const size_t flows = std::max<size_t>(1, group.pieces_sent.size());
  for (uint32_t i = 0; i < flows; ++i) flows_.StartOver(FlowId{group.first_flow + i});
}

uint32_t NvlinkGroups::TakeSlot(Group& group, uint64_t bytes) {
  for (const Receiver& receiver : group.receivers) {
    SIM_CHECK(static_cast<uint8_t>(group.posted - receiver.delivered) < kStoreSlots,
              "more messages than slots on an NVLink group");
  }
  SIM_CHECK(bytes > 0 && bytes <= UINT32_MAX, "an NVLink message of no bytes, or of 4 GiB or more");
  const uint32_t slot = group.posted++ % kStoreSlots;
  for (Receiver& receiver : group.receivers) {
    receiver.missing_bytes[slot] = static_cast<uint32_t>(bytes);
  }
  group.message_bytes[slot] = static_cast<uint32_t>(bytes);
  return slot;
}

void NvlinkGroups::PostMulticast(FlowId id, uint64_t bytes) {
  Group& group = groups_[id];
  if (group.streamed_bytes == 0) TakeSlot(group, bytes);
  const uint64_t rest = bytes - std::exchange(group.streamed_bytes, 0);
  StorePart(id, static_cast<uint32_t>(rest));
}

// Sends a part of a message after all that was posted before. No packet has bytes of two parts.
void NvlinkGroups::StorePart(FlowId id, uint32_t bytes) {
  groups_[id].waiting_parts.push_back(bytes);
  EnqueueWaiting(groups_[id]);
}

void NvlinkGroups::OnTurn(FlowId flow) { EnqueueWaiting(groups_[flows_.flow(flow).user]); }

void NvlinkGroups::EnqueueWaiting(Group& group) {
  const StoreFlow& flow = flows_.flow(group.first_flow);
  std::vector<uint32_t>& waiting = group.waiting_parts;
  size_t taken = 0;
  while (taken < waiting.size() && static_cast<uint8_t>(flow.posted - flow.sent) < kStoreSlots) {
    flows_.Enqueue(group.first_flow, waiting[taken++]);
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken));
}

void NvlinkGroups::PostReduce(FlowId id, uint64_t bytes) {
  const uint32_t slot = TakeSlot(groups_[id], bytes);
  if (flows_.are_flows()) [[unlikely]] {
    flows_.Enqueue(groups_[id].first_flow, static_cast<uint32_t>(bytes));  // of all members
    return;
  }
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = id;
  packet.sequence = slot;
  packet.path = groups_[id].request_path;
  packet.wire_bytes = kReadRequestWireBytes;
  packet.kind = PacketKind::kNvlinkReadRequest;
  packet.hop_count = 2;
  network_.Inject(index);
}

void NvlinkGroups::PostReduceTo(FlowId copies, FlowId id, uint64_t bytes) {
  SIM_CHECK(groups_[copies].streamed_bytes == 0, "two sums on their way to one group");
  if (!flows_.are_flows()) groups_[id].copies = copies;
  PostReduce(id, bytes);
}

void NvlinkGroups::Address(Packet& packet, FlowId flow_id, uint32_t slot) {
  packet.flow = flows_.flow(flow_id).user;
  packet.hop_count = 2;
  Group& group = groups_[packet.flow];
  if (packet.kind != PacketKind::kNvlinkOperand) {
    packet.sequence = group.sent % kStoreSlots;
    if (group.unsent_bytes == 0) group.unsent_bytes = group.message_bytes[packet.sequence];
    group.unsent_bytes -= packet.payload_bytes;
    if (group.unsent_bytes == 0) ++group.sent;
    return;
  }
  packet.sequence = group.pieces_sent[flow_id - group.first_flow]++;
  packet.tag = static_cast<uint16_t>(slot);
}

void NvlinkGroups::OnArrival(PacketId index) {
  const Packet& packet = network_.packet(index);
  const uint32_t id = packet.flow;
  if (packet.kind == PacketKind::kNvlinkReadRequest) {
    const Group& group = groups_[id];
    const FlowId flow{group.first_flow + packet.tag};
    const uint32_t bytes = group.message_bytes[packet.sequence];
    network_.FreePacket(index);
    flows_.Enqueue(flow, bytes);
    flows_.ServeDue();
    return;
  }
  const bool is_copy = packet.kind == PacketKind::kNvlinkMulticast;
  const uint32_t member = is_copy ? packet.tag : 0;
  const uint32_t slot = is_copy ? packet.sequence : packet.tag;
  const SumPart part = {.slot = slot, .bytes = packet.payload_bytes};
  groups_[id].receivers[member].missing_bytes[slot] -= part.bytes;
  network_.Deliver(index);
  if (!is_copy && groups_[id].copies != FlowId::kNone) StoreOfSum(FlowId{id}, part);
  // The sink may open groups, which moves the groups' records.
  const auto next_is_complete = [this, id, member] {
    const Group& group = groups_[id];
    const Receiver& receiver = group.receivers[member];
    return receiver.delivered != group.posted &&
           receiver.missing_bytes[receiver.delivered % kStoreSlots] == 0;
  };
  while (next_is_complete()) {
    Receiver& receiver = groups_[id].receivers[member];
    ++receiver.delivered;
    const SinkRef user = receiver.user;
    user.sink->OnDelivered(user.number);
  }
}

// Stores a part of the sum that has come, unless it is the last one.
void NvlinkGroups::StoreOfSum(FlowId id, const SumPart& part) {
  Group& sums = groups_[id];
  const FlowId copies_id = sums.copies;
  if (sums.receivers.front().missing_bytes[part.slot] == 0) {
    sums.copies = FlowId::kNone;
    return;
  }
  Group& copies = groups_[copies_id];
  if (copies.streamed_bytes == 0) TakeSlot(copies, sums.message_bytes[part.slot]);
  copies.streamed_bytes += part.bytes;
  StorePart(copies_id, part.bytes);
  flows_.ServeDue();
}

SinkRef NvlinkGroups::UserOf(const Packet& packet) const {
  const uint32_t member = packet.kind == PacketKind::kNvlinkMulticast ? packet.tag : 0;
  return groups_[packet.flow].receivers[member].user;
}

int64_t NvlinkGroups::RequestLatencyPs(FlowId id) const {
  return network_.PathLatencyPs({groups_[id].request_path, 2}, kReadRequestWireBytes);
}

// Sinks may open groups, which moves the groups' records.
void NvlinkGroups::Deliver(FlowId id) {
  const bool is_copy = groups_[id].kind == PacketKind::kNvlinkMulticast;
  const size_t receivers = groups_[id].receivers.size();
  for (size_t member = 0; member < receivers; ++member) {
    Receiver& receiver = groups_[id].receivers[member];
    const uint32_t bytes = groups_[id].message_bytes[receiver.delivered++ % kStoreSlots];
    if (!is_copy) {
      network_.flows().CountReduced((OperandCount(id) - 1) * bytes);
    } else if (member > 0) {
      network_.flows().CountReplicated(bytes);
    }
    network_.flows().CountDelivered(bytes);
    const SinkRef user = receiver.user;
    user.sink->OnDelivered(user.number);
  }
}

void NvlinkGroups::Check(StateArchive& archive) {
  CheckFields(groups_, archive);
  for (Group& group : groups_) CheckFields(group.receivers, archive);
}

}  // namespace railyard
