// SPDX-License-Identifier: GPL-2.0-only
// A transport that exists to show what one takes: messages arrive after a fixed latency, at a fixed
// rate for each flow, and are never lost. They cross no link of the fabric, so the transport
// reports their payload to the network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <ns3/simulator.h>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/units/units.h"

namespace railyard::testing {

// Holds one flow; its field table makes it known to the replay cache.
struct FixedLatencyFlow {
  SinkRef user;
  int64_t free_ps = 0;     // when the sender has sent what it has begun
  uint32_t under_way = 0;  // messages
  uint32_t grants_under_way = 0;
  bool is_closed = false;

  static constexpr auto Fields() {
    return FieldTable("flow", field::Fixed("user", &FixedLatencyFlow::user),
                      field::Instant("free_ps", &FixedLatencyFlow::free_ps),
                      field::Quiescent("under_way", &FixedLatencyFlow::under_way),
                      field::Quiescent("grants_under_way", &FixedLatencyFlow::grants_under_way),
                      field::Constant("is_closed", &FixedLatencyFlow::is_closed));
  }
};

class FixedLatencyTransport final : public Transport, public StateOwner {
 public:
  // `shows_state`: else it registers no state. Without a network, payload is reported to none.
  FixedLatencyTransport(FabricSimulatorImpl& engine, int64_t latency_ps, uint64_t rate_bps,
                        bool shows_state, FabricNetwork* network = nullptr)
      : engine_(engine),
        latency_ps_(latency_ps),
        rate_bps_(rate_bps),
        shows_state_(shows_state),
        network_(network) {}

  FlowId Open(const SinkRef& sink, GpuIndex /*source_gpu*/, GpuIndex /*destination_gpu*/,
              uint64_t /*entropy*/) override {
    flows_.push_back({.user = sink});
    return FlowId{flows_.size() - 1};
  }
  // Every packet arrives, so a sender needs no acknowledgement.
  void Post(FlowId id, const PostedMessage& message) override {
    FixedLatencyFlow& flow = flows_[id];
    flow.free_ps =
        std::max(flow.free_ps, engine_.NowPs()) + TransferTimePs(message.size.bytes, rate_bps_);
    ++flow.under_way;
    const uint64_t payload_bytes = message.size.data_bytes;
    if (network_ != nullptr) network_->flows().CountInjected(payload_bytes);
    At(flow.free_ps, [this, id] {
      const SinkRef user = flows_[id].user;
      if (!flows_[id].is_closed) user.sink->OnCompleted(user.number);
    });
    At(flow.free_ps + latency_ps_, [this, id, payload_bytes] {
      delivered_bytes_ += payload_bytes;
      if (network_ != nullptr) network_->flows().CountDelivered(payload_bytes);
      --flows_[id].under_way;
      const SinkRef user = flows_[id].user;
      if (!flows_[id].is_closed) user.sink->OnDelivered(user.number);
    });
  }
  // One part for each begun 4 KiB.
  uint32_t CompletedParts(FlowId /*flow*/, uint64_t bytes) const override {
    return static_cast<uint32_t>((bytes + 4095) / 4096);
  }
  void Grant(FlowId id, bool tells_sender) override {
    if (!tells_sender) return;
    ++flows_[id].grants_under_way;
    At(engine_.NowPs() + latency_ps_, [this, id] {
      --flows_[id].grants_under_way;
      const SinkRef user = flows_[id].user;
      if (!flows_[id].is_closed) user.sink->OnGranted(user.number);
    });
  }
  void Close(FlowId id) override { flows_[id].is_closed = true; }
  uint64_t delivered_bytes() const { return delivered_bytes_; }

  std::vector<LinkId> LinksOf(FlowId /*id*/) const override { return {}; }
  std::vector<LinkShare> LinkSharesOf(FlowId /*id*/) const override { return {}; }
  FlowStatus StatusOf(FlowId id) const override {
    const FixedLatencyFlow& flow = flows_[id];
    return {.is_under_way = flow.under_way + flow.grants_under_way > 0,
            .description = "a flow of fixed latency"};
  }
  StateOwner* state() override { return shows_state_ ? this : nullptr; }
  std::string state_name() const override { return "flows of fixed latency"; }
  void Visit(StateArchive& archive) override {
    archive.Named("flows").Constant(flows_.size());
    archive.Section();
    VisitFields(flows_, archive);
  }

 private:
  template <typename Action>
  void At(int64_t time_ps, Action action) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps - engine_.NowPs())),
                             action);
  }

  FabricSimulatorImpl& engine_;
  int64_t latency_ps_;
  uint64_t rate_bps_;
  bool shows_state_;
  FabricNetwork* network_;
  std::vector<FixedLatencyFlow> flows_;
  uint64_t delivered_bytes_ = 0;
};

class FixedLatencyStack final : public NetworkStack {
 public:
  FixedLatencyStack(FabricSimulatorImpl& engine, int64_t latency_ps, uint64_t rate_bps,
                    bool shows_state, FabricNetwork* network = nullptr)
      : transport_(engine, latency_ps, rate_bps, shows_state, network) {}

  Transport& Between(GpuIndex /*source_gpu*/, GpuIndex /*destination_gpu*/) override {
    return transport_;
  }
  Transport& Plain() override { return transport_; }
  void OnRoutesChanged() override {}
  std::vector<std::pair<std::string, Transport*>> transports() override {
    return {{"a transport of fixed latency", &transport_}};
  }

 private:
  FixedLatencyTransport transport_;
};

}  // namespace railyard::testing
