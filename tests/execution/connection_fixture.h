// SPDX-License-Identifier: GPL-2.0-only
// A connection table alone: two servers of eight GPUs, rank r on GPU r. Unless a test asks for
// another, the network stack is one that only tests have, whose flows have a latency of 1 us and a
// rate of 100 Gb/s.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/object.h>
#include <ns3/simulator.h>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "tests/transport/fixed_latency/fixed_latency_stack.h"
#include "topologies/generators/rail_optimized.h"
#include "workloads/layout/fabric_layout.h"

namespace railyard::testing {

inline constexpr int64_t kFlowLatencyPs = kPsPerUs;
inline constexpr uint64_t kFlowRateBps = 100'000'000'000;

// Hears of flows; a test may listen.
struct ListeningSink final : MessageSink {
  void OnDelivered(uint32_t number) override {
    if (on_delivered) on_delivered(ConnectionId{number});
  }
  void OnCompleted(uint32_t number) override {
    if (on_completed) on_completed(ConnectionId{number});
  }
  void OnGranted(uint32_t number) override {
    if (on_granted) on_granted(ConnectionId{number});
  }
  void OnLossRecovered(uint32_t number) override {
    if (on_loss_recovered) on_loss_recovered(ConnectionId{number});
  }
  void OnPacketLost(uint32_t /*number*/, const FlowLoss& /*loss*/) override {}
  void OnFailed(uint32_t /*number*/, bool /*at_sender*/, const FlowError& /*error*/) override {}

  std::function<void(ConnectionId)> on_delivered;
  std::function<void(ConnectionId)> on_completed;
  std::function<void(ConnectionId)> on_granted;
  std::function<void(ConnectionId)> on_loss_recovered;
};

inline std::unique_ptr<NetworkStack> MakeFixedLatencyStack(
    const NetworkStackParts& parts, const NetworkStackSettings& /*settings*/) {
  return std::make_unique<FixedLatencyStack>(parts.network.engine(), kFlowLatencyPs, kFlowRateBps,
                                             true);
}

class ConnectionFixture : public ::testing::Test {
 protected:
  explicit ConnectionFixture(const NetworkStackFactory& make_stack = MakeFixedLatencyStack,
                             ServerSpec server = {})
      : threads_(16) {
    server.count = 2;
    RailOptimizedSpec spec;
    spec.mixed_servers = {server};
    graph_ = MakeRailOptimized(spec);
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->Build(graph_, engine());
    routing_.emplace(graph_, 1);
    load_store_.emplace(graph_, *network_);
    aggregation_.emplace(graph_, *network_, *routing_, NicSettings{});
    stack_ = make_stack({.graph = graph_,
                         .network = *network_,
                         .routing = *routing_,
                         .load_store = *load_store_,
                         .proxies = threads_},
                        {});
    network_->SetSink(*load_store_);
    stack_->TakePackets(*network_);
    std::vector<GpuIndex> gpus(graph_.gpus().size());
    std::iota(gpus.begin(), gpus.end(), GpuIndex{0});
    planner_.emplace(LayoutOf(graph_, gpus), NcclSettings{});
    table_.emplace(graph_, *network_, *load_store_, *stack_, *aggregation_,
                   ConnectionTable::Sinks{.stores = &sink_,
                                          .loads = &sink_,
                                          .switch_sums = &sink_,
                                          .network_sums = &sink_,
                                          .network = &sink_});
    table_->AddCommunicator({.gpus = gpus, .planner = &*planner_, .part = PartIndex{3}});
  }
  ~ConnectionFixture() override { ns3::Simulator::Destroy(); }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }
  // The action happens at `time_ps`.
  template <typename Action>
  static void AtTime(int64_t time_ps, Action action) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps - engine().NowPs())),
                             action);
  }
  ConnectionId Between(uint32_t from, uint32_t to, uint32_t channel = 0,
                       ConnectionUse use = ConnectionUse::kRing) {
    return table_->Between(CommunicatorIndex{0}, channel, RankIndex{from}, RankIndex{to}, use);
  }
  const Connection& At(ConnectionId id) const { return table_->connection(id); }

  FabricGraph graph_;
  ns3::Ptr<FabricNetwork> network_;
  std::optional<EcmpRouting> routing_;
  std::optional<LoadStoreTransport> load_store_;
  std::optional<AggregationTransport> aggregation_;
  ProxyThreads threads_;
  std::unique_ptr<NetworkStack> stack_;
  std::optional<NcclPlanner> planner_;
  ListeningSink sink_;
  std::optional<ConnectionTable> table_;
};

}  // namespace railyard::testing
