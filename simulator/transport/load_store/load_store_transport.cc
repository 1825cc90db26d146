// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/load_store/load_store_transport.h"

#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

bool HasPcieBetweenGpus(const FabricGraph& graph) {
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    const DeviceKind kind = graph.device(id).kind;
    if (kind == DeviceKind::kPcieSwitch || kind == DeviceKind::kHostBridge) return true;
  }
  return false;
}

}  // namespace

LoadStoreTransport::LoadStoreTransport(const FabricGraph& graph, FabricNetwork& network)
    : graph_(graph),
      network_(network),
      flows_of_gpu_(graph.gpus().size()),
      planes_(graph),
      groups_(graph, network, *this),
      packet_payload_bytes_(graph.nvlink.packet_payload_bytes),
      full_packet_wire_bytes_(static_cast<uint32_t>(WireBytes(graph.nvlink.packet_payload_bytes))) {
  AddPorts(Tier::kNvlink);
  if (HasPcieBetweenGpus(graph)) {
    AddPorts(Tier::kHost);  // of stores
    AddPorts(Tier::kHost);  // of loads
  }
  network.engine().Register(event_order::kLoadStorePort,
                            {.name = "turns of GPUs' ports", .state = {.owner = this}},
                            &LoadStoreTransport::HandlePort, this);
}

void LoadStoreTransport::CarryByFlows(FlowNetwork& flows) {
  as_flows_ = std::make_unique<StoresAsFlows>(network_, flows, *this);
}

void LoadStoreTransport::HandlePort(void* self, uint32_t port) {
  MessageSink* const notified = static_cast<LoadStoreTransport*>(self)->Serve(port);
  if (notified != nullptr) notified->OnTurnEnded();
}

void LoadStoreTransport::AddPorts(Tier tier) {
  for (const DeviceId gpu : graph_.gpus()) {
    Port port;
    for (const auto edge : boost::make_iterator_range(boost::out_edges(gpu, graph_.graph()))) {
      const LinkProperties& link = graph_.graph()[edge];
      if (link.tier == tier) port.rate_bps += link.rate_bps;
    }
    ports_.push_back(port);
  }
}

uint64_t LoadStoreTransport::WireBytes(uint64_t payload_bytes) const {
  const uint64_t efficiency = graph_.nvlink.efficiency_per_mille;
  return DivideUp(payload_bytes * 1000, efficiency);
}

uint8_t LoadStoreTransport::NumberOf(MessageSink* sink) {
  const auto found = std::ranges::find(sinks_, sink);
  const auto number = static_cast<size_t>(found - sinks_.begin());
  constexpr size_t kSinksMax = 1u << 6;
  SIM_CHECK(number < kSinksMax, "more users of NVLink flows than a flow can name");
  if (found == sinks_.end()) sinks_.push_back(sink);
  return static_cast<uint8_t>(number);
}

FlowId LoadStoreTransport::Open(const SinkRef& sink, GpuIndex source_gpu,
                                GpuIndex destination_gpu) {
  const DeviceId source = graph_.gpus()[source_gpu];
  const DeviceId destination = graph_.gpus()[destination_gpu];
  StoreFlow flow;
  flow.port = source_gpu;
  flow.user = sink.number;
  flow.sink = NumberOf(sink.sink) & 0x3f;
  std::vector<uint32_t> weights;
  const std::vector<FabricGraph::NvlinkPath> paths = graph_.NvlinkRoutes(source, destination);
  if (paths.empty()) {
    const auto gpus = static_cast<uint32_t>(graph_.gpus().size());
    return AddPcieFlow(sink, gpus + source_gpu, graph_.HostPath(source, destination));
  }
  uint32_t first_path = 0;
  for (const FabricGraph::NvlinkPath& over : paths) {
    const PathRef path = network_.AddPath(over.links);
    if (weights.empty()) first_path = path.first;
    flow.path_links = path.hop_count;
    weights.push_back(over.lanes);
  }
  flow.interleave = planes_.InterleaveOf(weights);
  const bool uses_all = planes_.AreAll(source_gpu, destination_gpu, paths);
  flow.way = uses_all ? StoreWay::kAllPlanes : StoreWay::kPaths;
  flow.target = uses_all ? planes_.FirstPlaceOf(destination_gpu) : first_path;
  return AddFlow(flow, first_path);
}

FlowId LoadStoreTransport::OpenOfGroup(const OfGroup& of,
                                       const std::vector<uint32_t>& weights_of_planes) {
  StoreFlow flow;
  flow.port = of.gpu;
  flow.user = of.group;
  flow.kind = of.kind;
  flow.target = of.first_path.first;
  flow.path_links = of.first_path.hop_count;
  flow.interleave = planes_.InterleaveOf(weights_of_planes);
  return AddFlow(flow, of.first_path.first);
}

FlowId LoadStoreTransport::AddFlow(const StoreFlow& flow, uint32_t first_path) {
  const FlowId id{flows_.size()};
  std::vector<FlowId>& of_gpu = flows_of_gpu_[flow.port % flows_of_gpu_.size()];
  const size_t positions = planes_.interleave(flow.interleave).plane_of_position.size();
  flows_.push_back(flow);
  flows_base_ = reinterpret_cast<const char*>(flows_.data());
  StoreFlow& added = flows_.back();
  added.start = static_cast<uint8_t>(of_gpu.size() % std::min<size_t>(positions, UINT8_MAX + 1));
  added.position = added.start;
  first_paths_.push_back(first_path);
  of_gpu.push_back(id);
  return id;
}

void LoadStoreTransport::Append(Port& port, FlowId flow_id) {
  flows_[flow_id].next_active = StoreFlow::kNone;
  if (port.first_active == StoreFlow::kNone) {
    port.first_active = flow_id;
  } else {
    flows_[port.last_active].next_active = flow_id;
  }
  port.last_active = flow_id;
}

void LoadStoreTransport::Post(FlowId flow_id, const MessageSize& size) {
  StoreFlow& flow = flows_[flow_id];
  const uint64_t bytes = size.bytes;
  SIM_CHECK(static_cast<uint8_t>(flow.posted - flow.delivered) < kStoreSlots,
            "more messages than slots on an NVLink connection");
  SIM_CHECK(bytes > 0 && bytes <= UINT32_MAX, "an NVLink message of no bytes, or of 4 GiB or more");
  if (size.has_flags() || flow.has_sizes) [[unlikely]]
    SetSize(flow_id, size);
  Enqueue(flow_id, static_cast<uint32_t>(bytes));
}

// Sets the size of the next message to be posted. Earlier messages in flight have no flags.
void LoadStoreTransport::SetSize(FlowId flow_id, const MessageSize& size) {
  StoreFlow& flow = flows_[flow_id];
  if (sizes_.size() <= flow_id) sizes_.resize(flows_.size());
  if (!flow.has_sizes) {
    sizes_[flow_id].fill({});
    flow.has_sizes = true;
  }
  sizes_[flow_id][flow.posted % kStoreSlots] = size;
}

// Returns the flag bytes of a packet of a message of which `unsent_bytes`, this packet included,
// are unsent.
uint16_t LoadStoreTransport::FlagBytes(const Packet& packet, uint32_t unsent_bytes) const {
  const MessageSize& size = sizes_[packet.flow][packet.sequence];
  if (!size.has_flags()) return 0;
  const uint64_t begin = size.bytes - unsent_bytes;
  return static_cast<uint16_t>(packet.payload_bytes -
                               size.Part(begin, begin + packet.payload_bytes).data_bytes);
}

void LoadStoreTransport::Enqueue(FlowId flow_id, uint32_t bytes) {
  StoreFlow& flow = flows_[flow_id];
  const uint32_t slot = flow.posted++ % kStoreSlots;
  flow.missing_bytes[slot] = bytes;
  if (as_flows_ != nullptr) [[unlikely]] {
    as_flows_->Send(flow_id, slot, bytes);
    return;
  }
  if (flow.active) return;
  flow.active = true;
  Port& port = ports_[flow.port];
  Append(port, flow_id);
  if (port.event_pending) return;
  port.event_pending = true;
  FabricSimulatorImpl& engine = network_.engine();
  if (port.free_ps <= engine.NowPs()) {
    due_ports_.push_back(flow.port);
  } else {
    engine.ScheduleFabric(port.free_ps, event_order::kLoadStorePort, flow.port, flow.port);
  }
}

void LoadStoreTransport::FetchLinks(FlowId flow_id) const {
  const StoreFlow& flow = flows_[flow_id];
  if (flow.way != StoreWay::kAllPlanes) return;
  const std::vector<uint8_t>& planes = planes_.interleave(flow.interleave).plane_of_position;
  uint32_t position = flow.position;
  for (uint32_t i = 0; i < kFetchedLinks; ++i) {
    network_.FetchLink(planes_.Up(planes_.FirstPlaceOf(flow.nvlink_gpu()) + planes[position]));
    if (++position == planes.size()) position = 0;
  }
}

void LoadStoreTransport::ServeDue() {
  for (const uint32_t port : due_ports_) Serve(port);
  due_ports_.clear();
}

inline uint32_t LoadStoreTransport::SendPacket(StoreFlow& flow, FlowId flow_id) {
  const uint32_t slot = flow.sent % kStoreSlots;
  // Before its first packet, the whole message is missing.
  if (flow.unsent_bytes == 0) flow.unsent_bytes = flow.missing_bytes[slot];
  const uint32_t unsent_bytes = flow.unsent_bytes;
  const uint32_t payload = std::min(unsent_bytes, packet_payload_bytes_);
  flow.unsent_bytes -= payload;
  if (flow.unsent_bytes == 0) ++flow.sent;
  const auto wire_bytes =
      static_cast<uint16_t>(flow.way == StoreWay::kPcie        ? payload
                            : payload == packet_payload_bytes_ ? full_packet_wire_bytes_
                                                               : WireBytes(payload));
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = flow_id;
  packet.sequence = slot;
  const NvlinkPlanes::Interleave& interleave = planes_.interleave(flow.interleave);
  const uint32_t plane = interleave.plane_of_position[flow.position];
  if (++flow.position == interleave.plane_of_position.size()) flow.position = 0;
  packet.payload_bytes = static_cast<uint16_t>(payload);
  if (flow.has_sizes) [[unlikely]]
    packet.echo = FlagBytes(packet, unsent_bytes);
  packet.wire_bytes = wire_bytes;
  packet.kind = flow.kind;
  packet.hop_count = flow.path_links;
  if (flow.way == StoreWay::kAllPlanes) [[likely]] {
    network_.InjectOver(index, planes_.Up(planes_.FirstPlaceOf(flow.nvlink_gpu()) + plane),
                        planes_.Down(flow.target + plane));
    return wire_bytes;
  }
  packet.path = flow.target + flow.path_links * plane;
  if (flow.kind == PacketKind::kHostRead) {
    packet.kind = PacketKind::kHostReadRequest;
    packet.tag = packet.payload_bytes;
    packet.payload_bytes = 0;
    packet.wire_bytes = static_cast<uint16_t>(ReadRequestWireBytes(payload));
  } else if (flow.kind != PacketKind::kNvlinkWrite) {
    groups_.Address(packet, flow_id, slot);
  }
  network_.Inject(index);
  return wire_bytes;
}

MessageSink* LoadStoreTransport::Serve(uint32_t port_id) {
  Port& port = ports_[port_id];
  const FlowId flow_id{port.first_active};
  StoreFlow& flow = flows_[flow_id];
  const uint8_t sent_before = flow.sent;
  uint32_t wire_bytes = 0;
  for (uint32_t i = 0; i < kBurstPackets && flow.sent != flow.posted; ++i) {
    wire_bytes += SendPacket(flow, flow_id);
  }
  if (flow.kind == PacketKind::kNvlinkMulticast) [[unlikely]]
    groups_.OnTurn(flow_id);
  port.first_active = flow.next_active;
  if (flow.sent != flow.posted) {
    Append(port, flow_id);
  } else {
    flow.active = false;
  }
  FabricSimulatorImpl& engine = network_.engine();
  if (wire_bytes != port.paced_bytes) {
    port.paced_bytes = wire_bytes;
    port.paced_ps = TransferTimePs(wire_bytes, port.rate_bps);
  }
  port.free_ps = engine.NowPs() + port.paced_ps;
  port.event_pending = port.first_active != StoreFlow::kNone;
  if (port.event_pending)
    engine.ScheduleFabric(port.free_ps, event_order::kLoadStorePort, port_id, port_id);
  if (flow.sent == sent_before || flow.kind != PacketKind::kNvlinkWrite) return nullptr;
  MessageSink& sink = *sinks_[flow.sink];
  const uint32_t user = flow.user;
  for (uint8_t left = static_cast<uint8_t>(flow.sent - sent_before); left > 0; --left) {
    sink.OnInjected(user, port.free_ps);
  }
  return &sink;
}

void LoadStoreTransport::OnPacketAtNic(PacketId /*packet*/) {
  SIM_CHECK(false, "a store inside a server has reached a NIC");
}

void LoadStoreTransport::OnPacketInMemory(PacketId index) {
  const Packet& packet = network_.packet(index);
  if (packet.kind == PacketKind::kHostReadRequest) {
    AnswerRead(index);
    return;
  }
  if (packet.kind != PacketKind::kNvlinkWrite && packet.kind != PacketKind::kHostRead)
      [[unlikely]] {
    groups_.OnArrival(index);
    return;
  }
  const FlowId flow_id{packet.flow};
  StoreFlow& flow = flows_[flow_id];
  const bool is_complete = (flow.missing_bytes[packet.sequence] -= packet.payload_bytes) == 0;
  network_.Deliver(index);
  if (!is_complete) {
    sinks_[flow.sink]->OnUnderWay(flow.user);
    return;
  }
  // The sink may open connections, which moves the flows' records.
  const auto next_is_complete = [this, flow_id] {
    const StoreFlow& current = flows_[flow_id];
    return current.delivered != current.posted &&
           current.missing_bytes[current.delivered % kStoreSlots] == 0;
  };
  while (next_is_complete()) {
    ++flows_[flow_id].delivered;
    const StoreFlow& current = flows_[flow_id];
    sinks_[current.sink]->OnDelivered(current.user);
  }
}

void LoadStoreTransport::OnPacketDropped(PacketId packet, DropReason reason, LinkId link) {
  const Packet& dropped = network_.packet(packet);
  const bool is_of_flow = dropped.kind == PacketKind::kNvlinkWrite ||
                          dropped.kind == PacketKind::kHostRead ||
                          dropped.kind == PacketKind::kHostReadRequest;
  const SinkRef user = is_of_flow ? FirstUserOf(FlowId{dropped.flow}) : groups_.UserOf(dropped);
  user.sink->OnPacketLost(user.number, {.reason = reason, .link = link});
  const bool is_nvlink = link < graph_.link_count() && graph_.link(link).tier == Tier::kNvlink;
  user.sink->OnFailed(
      user.number, true,
      {.why = is_nvlink ? "an NVLink lost a packet; the GPU reports a fatal link error (Xid 74)"
                        : "a PCIe link lost a packet; the GPU has fallen off the bus (Xid 79)"});
}

void LoadStoreTransport::Visit(StateArchive& archive) {
  archive.Named("flows").Constant(flows_.size());
  archive.Named("groups").Constant(groups_.size());
  VisitFields(flows_, archive);
  VisitFields(ports_, archive);
  if (!archive.is_checking()) return;
  groups_.Check(archive);
  if (as_flows_ != nullptr) as_flows_->Check(archive);
}

void LoadStoreTransport::VisitGpus(std::span<const GpuIndex> gpus, StateArchive& archive) {
  for (const GpuIndex gpu : gpus) {
    for (const FlowId flow : flows_of_gpu_[gpu]) VisitFields(flows_[flow], flow, archive);
    for (size_t port = gpu; port < ports_.size(); port += flows_of_gpu_.size()) {
      VisitFields(ports_[port], port, archive);
    }
  }
}

SinkRef LoadStoreTransport::FirstUserOf(FlowId flow_id) const {
  const StoreFlow& flow = flows_[flow_id];
  if (flow.is_of_group()) return groups_.FirstUserOf(FlowId{flow.user});
  return {sinks_[flow.sink], flow.user};
}

uint64_t LoadStoreTransport::PayloadBytes(FlowId flow_id, uint32_t slot) const {
  const StoreFlow& flow = flows_[flow_id];
  return flow.has_sizes ? sizes_[flow_id][slot].data_bytes : flow.missing_bytes[slot];
}

std::vector<LoadStoreTransport::PlanePath> LoadStoreTransport::PathsOf(FlowId flow_id) const {
  const StoreFlow& flow = flows_[flow_id];
  std::vector<PlanePath> paths;
  uint32_t first = first_paths_[flow_id];
  for (const uint32_t weight : planes_.interleave(flow.interleave).weights) {
    paths.push_back({{first, flow.path_links}, weight});
    first += flow.path_links;
  }
  return paths;
}

std::vector<LinkId> LoadStoreTransport::LinksOf(FlowId flow_id) const {
  return network_.paths().LinksOf(PathsOf(flow_id).front().path);
}

std::vector<LinkShare> LoadStoreTransport::LinkSharesOf(FlowId flow_id) const {
  const std::vector<PlanePath> planes = PathsOf(flow_id);
  double weights = 0;
  for (const PlanePath& plane : planes) weights += plane.weight;
  std::vector<LinkShare> shares;
  for (const PlanePath& plane : planes) {
    for (const LinkId link : network_.paths().LinksOf(plane.path)) {
      shares.push_back({link, plane.weight / weights});
    }
  }
  return shares;
}

}  // namespace railyard
