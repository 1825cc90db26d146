// SPDX-License-Identifier: GPL-2.0-only
// Flows over PCIe: stores to GPUs and into hosts' memories, and loads from there.
#include "simulator/diagnostics/check.h"
#include "simulator/transport/load_store/load_store_transport.h"

namespace railyard {

FlowId LoadStoreTransport::OpenHostStore(const SinkRef& sink, GpuIndex source_gpu,
                                         GpuIndex owner_gpu) {
  const DeviceId bridge = graph_.HostBridgeOf(graph_.gpus()[owner_gpu]).value();
  const auto gpus = static_cast<uint32_t>(graph_.gpus().size());
  return AddPcieFlow(sink, gpus + source_gpu, graph_.HostPath(graph_.gpus()[source_gpu], bridge));
}

FlowId LoadStoreTransport::OpenHostLoad(const SinkRef& sink, GpuIndex gpu) {
  const DeviceId device = graph_.gpus()[gpu];
  const DeviceId bridge = graph_.HostBridgeOf(device).value();
  const PathRef answer = network_.AddPath(graph_.HostPath(bridge, device));
  const auto gpus = static_cast<uint32_t>(graph_.gpus().size());
  const FlowId flow = AddPcieFlow(sink, 2 * gpus + gpu, graph_.HostPath(device, bridge));
  flows_[flow].kind = PacketKind::kHostRead;
  first_paths_[flow] = answer.first;
  return flow;
}

FlowId LoadStoreTransport::AddPcieFlow(const SinkRef& sink, uint32_t port,
                                       const std::vector<LinkId>& links) {
  SIM_CHECK(!links.empty(), "a connection in a server between what neither NVLink nor PCIe joins");
  const PathRef path = network_.AddPath(links);
  StoreFlow flow;
  flow.port = port;
  flow.user = sink.number;
  flow.sink = NumberOf(sink.sink) & 0x3f;
  flow.interleave = planes_.InterleaveOf({1});
  flow.target = path.first;
  flow.path_links = path.hop_count;
  flow.way = StoreWay::kPcie;
  return AddFlow(flow, path.first);
}

int64_t LoadStoreTransport::RequestLatencyPs(const StoreFlow& flow, uint32_t packet_bytes) const {
  return network_.PathLatencyPs({flow.target, flow.path_links}, ReadRequestWireBytes(packet_bytes));
}

// Sends the memory's answer to a read request.
void LoadStoreTransport::AnswerRead(PacketId request) {
  const PacketId index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  const Packet& asked = network_.packet(request);
  packet.flow = asked.flow;
  packet.sequence = asked.sequence;
  packet.path = first_paths_[asked.flow];
  packet.payload_bytes = asked.tag;
  packet.echo = asked.echo;
  packet.wire_bytes = asked.tag;
  packet.kind = PacketKind::kHostRead;
  packet.hop_count = flows_[asked.flow].path_links;
  network_.FreePacket(request);
  network_.Inject(index);
}

}  // namespace railyard
