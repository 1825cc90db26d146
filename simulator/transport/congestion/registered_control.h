// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulator/transport/congestion/congestion_control_base.h"
#include "simulator/transport/congestion/queue_pair_control.h"

namespace railyard {

// Adapts a control that a program has registered (RegisterCongestionControl), with one object of it
// per queue pair.
class RegisteredControl final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  Needs needs() const override;
  std::string Contradiction() const override;
  std::string WhyNeverReplayed() const override;
  void OnSend(FlowId queue_pair, int64_t now_ps, uint32_t wire_bytes) override;
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;
  void OnCnp(FlowId queue_pair, int64_t now_ps) override;
  void OnNack(FlowId queue_pair, int64_t now_ps) override;
  void OnTimeout(FlowId queue_pair, int64_t now_ps) override;

 private:
  void OnOpen(FlowId queue_pair) override;
  void TakeLimits(FlowId queue_pair) { SetLimits(queue_pair, controls_[queue_pair]->limits()); }

  std::string name_;
  std::vector<std::unique_ptr<QueuePairControl>> controls_;
};

}  // namespace railyard
