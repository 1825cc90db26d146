// SPDX-License-Identifier: GPL-2.0-only
// A connection table alone, over a network stack that only tests have: two servers of eight GPUs,
// rank r on GPU r. The stack's flows have a latency of 1 us and a rate of 100 Gb/s.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/object.h>
#include <ns3/simulator.h>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/paths/fabric_layout.h"
#include "tests/transport/fixed_latency/fixed_latency_stack.h"
#include "topologies/generators/rail_optimized.h"

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
  void OnPacketLost(uint32_t /*number*/, LinkId /*link*/) override {}
  void OnFailed(uint32_t /*number*/, bool /*at_sender*/, const std::string& /*why*/) override {}

  std::function<void(ConnectionId)> on_delivered;
  std::function<void(ConnectionId)> on_completed;
};

class ConnectionFixture : public ::testing::Test {
 protected:
  ConnectionFixture() {
    RailOptimizedSpec spec;
    spec.servers = 2;
    graph_ = MakeRailOptimized(spec);
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->Build(graph_, engine());
    routing_.emplace(graph_, 1);
    load_store_.emplace(graph_, *network_);
    aggregation_.emplace(graph_, *network_, *routing_, NicSettings{});
    stack_.emplace(engine(), kFlowLatencyPs, kFlowRateBps, true);
    std::vector<GpuIndex> gpus(graph_.gpus().size());
    std::iota(gpus.begin(), gpus.end(), GpuIndex{0});
    planner_.emplace(LayoutOf(graph_, gpus), NcclSettings{});
    table_.emplace(graph_, *network_, *load_store_, *stack_, *aggregation_,
                   ConnectionTable::Sinks{.stores = &sink_,
                                          .loads = &sink_,
                                          .switch_sums = &sink_,
                                          .network_sums = &sink_,
                                          .network = &sink_});
    table_->AddCommunicator({.gpus = gpus, .planner = &*planner_, .part = 3});
  }
  ~ConnectionFixture() override { ns3::Simulator::Destroy(); }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }
  ConnectionId Between(uint32_t from, uint32_t to, uint32_t channel = 0) {
    return table_->Between(0, channel, RankIndex{from}, RankIndex{to}, ConnectionUse::kRing);
  }
  const Connection& At(ConnectionId id) const { return table_->connection(id); }

  FabricGraph graph_;
  ns3::Ptr<FabricNetwork> network_;
  std::optional<EcmpRouting> routing_;
  std::optional<LoadStoreTransport> load_store_;
  std::optional<AggregationTransport> aggregation_;
  std::optional<FixedLatencyStack> stack_;
  std::optional<NcclPlanner> planner_;
  ListeningSink sink_;
  std::optional<ConnectionTable> table_;
};

}  // namespace railyard::testing
