// SPDX-License-Identifier: GPL-2.0-only
// Defines the sinks that receive the transports' callbacks for the flows of connections, with one
// class per kind of flow. They identify a flow by its connection and ignore deliveries for closed
// connections.
#pragma once

#include <string>
#include <utility>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/execution/proxies/nic_failover.h"
#include "simulator/execution/slices/lane_runner.h"
#include "simulator/execution/slices/slice_messages.h"

namespace railyard {

class FlowSink : public MessageSink {
 public:
  FlowSink(const ConnectionTable& table, LaneObserver& observer)
      : table_(table), observer_(observer) {}

  void OnPacketLost(uint32_t connection, const FlowLoss& loss) final {
    observer_.OnPacketLost(ConnectionId{connection}, loss);
  }
  void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) final {
    observer_.OnPacketRepeated(ConnectionId{connection}, payload_bytes);
  }
  void OnRetransmission(uint32_t connection) final {
    observer_.OnRetransmission(ConnectionId{connection});
  }
  void OnLossRecovered(uint32_t connection) final {
    observer_.OnLossRecovered(ConnectionId{connection});
  }
  void OnFailed(uint32_t connection, bool at_sender, const FlowError& error) override {
    if (!IsClosed(connection))
      observer_.OnConnectionError(ConnectionId{connection}, at_sender, error.why);
  }

 protected:
  bool IsClosed(uint32_t connection) const { return table_.IsClosed(ConnectionId{connection}); }
  LaneObserver& observer() { return observer_; }

 private:
  const ConnectionTable& table_;
  LaneObserver& observer_;
};

// Receives the callbacks of stores into the memory of the receiver or of the relaying GPU.
class StoreSink final : public FlowSink {
 public:
  StoreSink(ConnectionTable& table, LaneObserver& observer, SliceMessages& messages,
            LaneRunner& runner)
      : FlowSink(table, observer), table_(table), messages_(messages), runner_(runner) {}
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    messages_.OnStored(ConnectionId{connection});
    runner_.RunWoken();
  }
  void OnUnderWay(uint32_t connection) override {
    const MessageSlots& slots = table_.slots(ConnectionId{connection});
    __builtin_prefetch(&slots, 1);
    __builtin_prefetch(&slots.time_ps, 1);
  }
  void OnInjected(uint32_t connection, int64_t left_ps) override {
    runner_.OnInjected(ConnectionId{connection}, left_ps);
  }
  void OnTurnEnded() override { runner_.RunWoken(); }

 private:
  ConnectionTable& table_;
  SliceMessages& messages_;
  LaneRunner& runner_;
};

// Receives the callbacks of a receiver's loads from host memory.
class LoadSink final : public FlowSink {
 public:
  LoadSink(const ConnectionTable& table, LaneObserver& observer, LaneRunner& runner)
      : FlowSink(table, observer), runner_(runner) {}
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    runner_.OnLoaded(ConnectionId{connection});
    runner_.RunWoken();
  }

 private:
  LaneRunner& runner_;
};

// Receives the callbacks of sums that NVSwitches compute (NVLink SHARP).
class SwitchSumSink final : public FlowSink {
 public:
  SwitchSumSink(const ConnectionTable& table, LaneObserver& observer, LaneRunner& runner)
      : FlowSink(table, observer), runner_(runner) {}
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    runner_.OnSwitchSum(ConnectionId{connection});
    runner_.RunWoken();
  }

 private:
  LaneRunner& runner_;
};

// Receives the callbacks of sums that the network's switches compute (SHARP).
class NetworkSumSink final : public FlowSink {
 public:
  NetworkSumSink(const ConnectionTable& table, LaneObserver& observer, NetworkProxies& proxies,
                 LaneRunner& runner)
      : FlowSink(table, observer), proxies_(proxies), runner_(runner) {}
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    proxies_.OnSumDelivered(ConnectionId{connection});
    runner_.RunWoken();
  }

 private:
  NetworkProxies& proxies_;
  LaneRunner& runner_;
};

// Receives the callbacks of messages between servers.
class NetworkSink final : public FlowSink {
 public:
  NetworkSink(const ConnectionTable& table, LaneObserver& observer, NetworkProxies& proxies,
              LaneRunner& runner)
      : FlowSink(table, observer), proxies_(proxies), runner_(runner) {}
  // Enables failover: connections whose other end does not answer move to another NIC if they can.
  void FailOver(NicFailover& failover) { failover_ = &failover; }
  void OnDelivered(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    proxies_.OnDelivered(ConnectionId{connection});
    runner_.RunWoken();
  }
  void OnCompleted(uint32_t connection) override {
    if (IsClosed(connection)) [[unlikely]]
      return;
    proxies_.OnCompleted(ConnectionId{connection});
    runner_.RunWoken();
  }
  void OnGranted(uint32_t connection) override {
    if (!IsClosed(connection)) [[likely]]
      proxies_.OnGranted(ConnectionId{connection});
  }
  void OnFailed(uint32_t connection, bool at_sender, const FlowError& error) override {
    if (IsClosed(connection)) return;
    if (failover_ != nullptr && error.is_unanswered &&
        failover_->TryToMove(ConnectionId{connection})) {
      runner_.RunWoken();
      return;
    }
    observer().OnConnectionError(ConnectionId{connection}, at_sender, error.why);
  }

 private:
  NetworkProxies& proxies_;
  LaneRunner& runner_;
  NicFailover* failover_ = nullptr;
};

// Receives the callbacks of a flow that its connection has abandoned. Deliveries and errors are
// ignored, since the connection repeats its messages over another flow.
class LeftNetworkSink final : public FlowSink {
 public:
  using FlowSink::FlowSink;
  void OnDelivered(uint32_t /*connection*/) override {}
  void OnFailed(uint32_t /*connection*/, bool /*at_sender*/, const FlowError& /*error*/) override {}
};

}  // namespace railyard
