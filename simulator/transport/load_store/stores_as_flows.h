// SPDX-License-Identifier: GPL-2.0-only
// Carries messages inside a server as flows (flow mode). A message's bytes leave at the flow's rate
// over all planes at once. Its last packet then takes the path's latency, and the serialization of
// a packet on each link beyond that on the slowest, which the rate contains.
//
// A load from a host's memory, or of a sum, is a flow of what is loaded; the request adds its
// latency. All operands of a sum flow at one rate, and so do all copies of a multicast.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/flow/flow_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/flow_owner.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/load_store/store_flow.h"

namespace railyard {

class LoadStoreTransport;

class StoresAsFlows final : public PipeUser {
 public:
  // All references must outlive this object.
  StoresAsFlows(FabricNetwork& network, FlowNetwork& pipes, LoadStoreTransport& flows)
      : network_(network), pipes_(pipes), flows_(flows) {}

  // Sends a posted message of a flow, which is in `slot`.
  void Send(FlowId flow, uint32_t slot, uint64_t bytes);

  void OnLeft(uint32_t flow) override;
  void OnAllLeft() override;
  void OnArrived(uint32_t flow) override;

  // Checks the carriers, of which snapshots need nothing.
  void Check(StateArchive& archive);

 private:
  // Holds the pipe of a flow of LoadStoreTransport.
  struct Carrier {
    PipeId pipe = PipeId::kNone;
    uint64_t rate_alone_bps = 0;
    int64_t full_packet_ps = 0;  // latency of a message with a full packet
    uint64_t rate_changes = 0;   // of links, when rate and latency were computed

    static constexpr auto Fields() {
      constexpr std::string_view kDerived = "CarrierOf() computes it from the links' rates";
      return FieldTable("carrier", field::Fixed("pipe", &Carrier::pipe),
                        field::NoState("rate_alone_bps", &Carrier::rate_alone_bps, kDerived),
                        field::NoState("full_packet_ps", &Carrier::full_packet_ps, kDerived),
                        field::NoState("rate_changes", &Carrier::rate_changes, kDerived));
    }
  };
  const Carrier& CarrierOf(FlowId flow);
  FlowRoute RouteOf(FlowId flow) const;
  uint64_t WireBytesOf(const StoreFlow& flow, uint64_t bytes) const;
  int64_t LatencyPs(FlowId flow, uint64_t packet_bytes) const;

  FabricNetwork& network_;
  FlowNetwork& pipes_;
  LoadStoreTransport& flows_;
  std::vector<Carrier> carriers_;             // by flow, opened when first used
  std::vector<MessageSink*> notified_sinks_;  // sinks with OnInjected() in the current event
};

}  // namespace railyard
