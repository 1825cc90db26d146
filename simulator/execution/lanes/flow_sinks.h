// SPDX-License-Identifier: GPL-2.0-only
// What a lane executor is to the flows of its connections: one sink for each thing that a flow can
// carry. All of them call a flow by its connection.
#pragma once

#include <string>

#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

class LaneExecutor::FlowSink : public MessageSink {
 public:
  explicit FlowSink(LaneExecutor& executor) : executor_(executor) {}

  void OnPacketLost(uint32_t connection, LinkId link) final {
    executor_.observer_.OnPacketLost(connection, link);
  }
  void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) final {
    executor_.observer_.OnPacketRepeated(connection, payload_bytes);
  }
  void OnRetransmission(uint32_t connection) final {
    executor_.observer_.OnRetransmission(connection);
  }
  void OnLossRecovered(uint32_t connection) final {
    executor_.observer_.OnLossRecovered(connection);
  }
  void OnFailed(uint32_t connection, bool at_sender, const std::string& why) override {
    if (!IsClosed(connection)) executor_.observer_.OnConnectionError(connection, at_sender, why);
  }

 protected:
  bool IsClosed(uint32_t connection) const { return executor_.table_.slots(connection).is_closed; }

  LaneExecutor& executor_;  // NOLINT(*-non-private-member-variables-in-classes)
};

// Stores into the receiver's memory, or into that of the GPU that relays them.
class LaneExecutor::StoreSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    executor_.OnStoreArrival(connection);
    executor_.RunWoken();
  }
  void OnUnderWay(uint32_t connection) override {
    const MessageSlots& slots = executor_.table_.slots(connection);
    __builtin_prefetch(&slots, 1);
    __builtin_prefetch(&slots.time_ps, 1);
  }
  void OnInjected(uint32_t connection, int64_t left_ps) override {
    executor_.OnInjected(connection, left_ps);
  }
  void OnTurnEnded() override { executor_.RunWoken(); }
};

// Loads of a receiver from a host's memory.
class LaneExecutor::LoadSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    executor_.OnLoaded(connection);
    executor_.RunWoken();
  }
};

// Sums that NVSwitches make of operands.
class LaneExecutor::SwitchSumSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    executor_.OnSwitchSum(connection);
    executor_.RunWoken();
  }
};

// Results of sums that the network's switches make.
class LaneExecutor::NetworkSumSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    executor_.OnNetworkSum(connection);
    executor_.RunWoken();
  }
};

// Messages between servers.
class LaneExecutor::NetworkSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t connection) override { executor_.OnNetworkArrival(connection); }
  void OnCompleted(uint32_t connection) override { executor_.OnCompleted(connection); }
  void OnGranted(uint32_t connection) override { executor_.OnGranted(connection); }
  void OnFailed(uint32_t connection, bool at_sender, const std::string& why) override {
    executor_.OnNetworkFailed(connection, at_sender, why);
  }
};

// The same over a flow that its connection has left: its messages are sent again over another.
class LaneExecutor::LeftNetworkSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t /*connection*/) override {}
  void OnFailed(uint32_t /*connection*/, bool /*at_sender*/, const std::string& /*why*/) override {}
};

struct LaneExecutor::FlowSinks {
  explicit FlowSinks(LaneExecutor& executor)
      : stores(executor),
        loads(executor),
        switch_sums(executor),
        network_sums(executor),
        network(executor),
        left_network(executor) {}

  StoreSink stores;
  LoadSink loads;
  SwitchSumSink switch_sums;
  NetworkSumSink network_sums;
  NetworkSink network;
  LeftNetworkSink left_network;
};

}  // namespace railyard
