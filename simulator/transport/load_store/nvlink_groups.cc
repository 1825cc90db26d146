// SPDX-License-Identifier: GPL-2.0-only
// Stores to all GPUs of a group and loads that sum over them, as NCCL's NVLS uses them (PTX
// multimem.st and multimem.ld_reduce).
#include <algorithm>
#include <cstddef>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/load_store/load_store_transport.h"

namespace railyard {
std::vector<LoadStoreTransport::GroupPlane> LoadStoreTransport::PlanesOf(
    std::span<const GpuIndex> gpus) const {
  std::vector<GroupPlane> planes;
  if (gpus.size() < 2) return planes;
  std::vector<DeviceId> devices;
  for (const GpuIndex gpu : gpus) devices.push_back(graph_.gpus()[gpu]);
  for (const DeviceId nvswitch : graph_.SharedNvSwitches(devices)) {
    GroupPlane plane{.up_links = {}, .down_links = {}, .lanes = UINT32_MAX};
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

bool LoadStoreTransport::CanGroup(std::span<const GpuIndex> gpus) const {
  return !PlanesOf(gpus).empty();
}

LinkId LoadStoreTransport::UpLink(GpuIndex gpu, const GroupPlane& plane) const {
  const DeviceId nvswitch = graph_.link_source(plane.down_links.front());
  const auto link = graph_.FindLink(graph_.gpus()[gpu], nvswitch);
  SIM_CHECK(link.has_value(), "a GPU that uses a group of another island");
  return *link;
}

FlowId LoadStoreTransport::AddGroup(PacketKind kind, GpuIndex head_gpu,
                                    std::vector<Receiver> receivers,
                                    const std::vector<GroupPlane>& planes) {
  SIM_CHECK(!planes.empty(), "a group of GPUs that no NVSwitch joins");
  std::vector<LinkId> up_links;
  for (const GroupPlane& plane : planes) {
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

FlowId LoadStoreTransport::AddGroupFlow(FlowId group, GpuIndex gpu, uint32_t first_path,
                                        uint8_t path_links, const std::vector<GroupPlane>& planes) {
  std::vector<uint32_t> weights;
  for (const GroupPlane& plane : planes) weights.push_back(plane.lanes);
  Flow flow;
  flow.port = gpu;
  flow.user = group;
  flow.kind = groups_[group].kind;
  flow.target = first_path;
  flow.path_links = path_links;
  flow.interleave = InterleaveOf(weights);
  return AddFlow(flow, first_path);
}

// Adds, for each plane, the link up and then all links down.
uint32_t LoadStoreTransport::AddFanOut(GpuIndex head_gpu, const std::vector<GroupPlane>& planes) {
  uint32_t first = 0;
  for (const GroupPlane& plane : planes) {
    std::vector<LinkId> links = {UpLink(head_gpu, plane)};
    links.insert(links.end(), plane.down_links.begin(), plane.down_links.end());
    const PathRef path = network_.AddPath(links);
    if (&plane == &planes.front()) first = path.first;
  }
  return first;
}

FlowId LoadStoreTransport::OpenMulticast(GpuIndex head_gpu,
                                         const std::vector<GroupMember>& members) {
  std::vector<GpuIndex> gpus;
  std::vector<Receiver> receivers;
  for (const GroupMember& member : members) {
    gpus.push_back(member.gpu);
    receivers.push_back({.user = member.sink.number, .sink = NumberOf(member.sink.sink)});
  }
  const auto planes = PlanesOf(gpus);
  const FlowId id = AddGroup(PacketKind::kNvlinkMulticast, head_gpu, std::move(receivers), planes);
  const auto links = static_cast<uint8_t>(1 + gpus.size());
  groups_[id].first_flow = AddGroupFlow(id, head_gpu, AddFanOut(head_gpu, planes), links, planes);
  return id;
}

FlowId LoadStoreTransport::OpenReduce(const SinkRef& sink, GpuIndex head_gpu,
                                      const std::vector<GpuIndex>& members) {
  const auto planes = PlanesOf(members);
  const Receiver head = {.user = sink.number, .sink = NumberOf(sink.sink)};
  const FlowId id = AddGroup(PacketKind::kNvlinkOperand, head_gpu, {head}, planes);
  groups_[id].request_path = AddFanOut(head_gpu, planes);
  groups_[id].first_flow = FlowId{flows_.size()};
  for (size_t member = 0; member < members.size(); ++member) {
    uint32_t first_path = 0;
    for (const GroupPlane& plane : planes) {
      const LinkId down = graph_.ReverseLink(UpLink(head_gpu, plane));
      const PathRef path = network_.AddPath({plane.up_links[member], down});
      if (&plane == &planes.front()) first_path = path.first;
    }
    AddGroupFlow(id, members[member], first_path, 2, planes);
  }
  groups_[id].pieces_sent.resize(members.size());
  return id;
}

void LoadStoreTransport::StartGroupOver(FlowId id) {
  const Group& group = groups_[id];
  const size_t flows = std::max<size_t>(1, group.pieces_sent.size());
  for (uint32_t i = 0; i < flows; ++i) StartOver(FlowId{group.first_flow + i});
}

uint32_t LoadStoreTransport::TakeSlot(Group& group, uint64_t bytes) {
  for (const Receiver& receiver : group.receivers) {
    SIM_CHECK(static_cast<uint8_t>(group.posted - receiver.delivered) < kMessageSlots,
              "more messages than slots on an NVLink group");
  }
  SIM_CHECK(bytes > 0 && bytes <= UINT32_MAX, "an NVLink message of no bytes, or of 4 GiB or more");
  const uint32_t slot = group.posted++ % kMessageSlots;
  for (Receiver& receiver : group.receivers) {
    receiver.missing_bytes[slot] = static_cast<uint32_t>(bytes);
  }
  group.message_bytes[slot] = static_cast<uint32_t>(bytes);
  return slot;
}

void LoadStoreTransport::PostMulticast(FlowId id, uint64_t bytes) {
  Group& group = groups_[id];
  if (group.streamed_bytes == 0) TakeSlot(group, bytes);
  const uint64_t rest = bytes - std::exchange(group.streamed_bytes, 0);
  StorePart(id, static_cast<uint32_t>(rest));
}

// Sends a part of a message after all that was posted before. No packet has bytes of two parts.
void LoadStoreTransport::StorePart(FlowId id, uint32_t bytes) {
  groups_[id].waiting_parts.push_back(bytes);
  EnqueueWaiting(groups_[id].first_flow);
}

void LoadStoreTransport::EnqueueWaiting(FlowId flow_id) {
  const Flow& flow = flows_[flow_id];
  std::vector<uint32_t>& waiting = groups_[flow.user].waiting_parts;
  size_t taken = 0;
  while (taken < waiting.size() && static_cast<uint8_t>(flow.posted - flow.sent) < kMessageSlots) {
    Enqueue(flow_id, waiting[taken++]);
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken));
}

void LoadStoreTransport::PostReduce(FlowId id, uint64_t bytes) {
  const uint32_t slot = TakeSlot(groups_[id], bytes);
  if (carriers_ != nullptr) [[unlikely]] {
    Enqueue(groups_[id].first_flow, static_cast<uint32_t>(bytes));  // of all members
    return;
  }
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = id;
  packet.sequence = slot;
  packet.path = groups_[id].request_path;
  packet.wire_bytes = kGroupReadRequestWireBytes;
  packet.kind = PacketKind::kNvlinkReadRequest;
  packet.hop_count = 2;
  network_.Inject(index);
}

void LoadStoreTransport::PostReduceTo(FlowId copies, FlowId id, uint64_t bytes) {
  SIM_CHECK(groups_[copies].streamed_bytes == 0, "two sums on their way to one group");
  if (carriers_ == nullptr) groups_[id].copies = copies;
  PostReduce(id, bytes);
}

void LoadStoreTransport::AddressToGroup(Packet& packet, FlowId flow_id, uint32_t slot) {
  packet.flow = flows_[flow_id].user;
  packet.hop_count = 2;
  Group& group = groups_[packet.flow];
  if (packet.kind != PacketKind::kNvlinkOperand) {
    packet.sequence = group.sent % kMessageSlots;
    if (group.unsent_bytes == 0) group.unsent_bytes = group.message_bytes[packet.sequence];
    group.unsent_bytes -= packet.payload_bytes;
    if (group.unsent_bytes == 0) ++group.sent;
    return;
  }
  packet.sequence = group.pieces_sent[flow_id - group.first_flow]++;
  packet.tag = static_cast<uint16_t>(slot);
}

void LoadStoreTransport::OnGroupArrival(PacketId index) {
  const Packet& packet = network_.packet(index);
  const uint32_t id = packet.flow;
  if (packet.kind == PacketKind::kNvlinkReadRequest) {
    const Group& group = groups_[id];
    const FlowId flow{group.first_flow + packet.tag};
    const uint32_t bytes = group.message_bytes[packet.sequence];
    network_.FreePacket(index);
    Enqueue(flow, bytes);
    ServeDue();
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
           receiver.missing_bytes[receiver.delivered % kMessageSlots] == 0;
  };
  while (next_is_complete()) {
    Receiver& receiver = groups_[id].receivers[member];
    ++receiver.delivered;
    sinks_[receiver.sink]->OnDelivered(receiver.user);
  }
}

// Stores a part of the sum that has come, unless it is the last one.
void LoadStoreTransport::StoreOfSum(FlowId id, const SumPart& part) {
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
  ServeDue();
}

SinkRef LoadStoreTransport::UserOf(const Packet& packet) const {
  if (packet.kind == PacketKind::kNvlinkWrite || packet.kind == PacketKind::kHostRead ||
      packet.kind == PacketKind::kHostReadRequest) {
    const Flow& flow = flows_[packet.flow];
    return {sinks_[flow.sink], flow.user};
  }
  const Group& group = groups_[packet.flow];
  const uint32_t member = packet.kind == PacketKind::kNvlinkMulticast ? packet.tag : 0;
  const Receiver& receiver = group.receivers[member];
  return {sinks_[receiver.sink], receiver.user};
}

}  // namespace railyard
