// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements HPCC (Li et al., SIGCOMM 2019, algorithm 1). It computes a window W, and a rate of one
// window per T, from the switches' reports of their queues. T is the round trip of an idle fabric,
// B the rate of a link.
//
//   per link:  u = min(backlog, backlog before) / (B T) + sent rate / B
//              tau = time between the two reports
//   U = (1 - tau/T) U + tau/T max u, with the tau of the link of max u, at most T
//   U >= eta, or maxStage increases since the last such step:  W = W_c / (U / eta) + W_AI
//   else:                                                      W = W_c + W_AI
//   W_c = W once per round trip, at the first ACK of data sent after the last such update
//
// A queue pair starts with W = B T for the rate B of its port, without a limit on its rate, and W
// never exceeds that. If a path has more switches than telemetry has slots, only the first ones
// count.
class Hpcc final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    double utilization = 0;      // U
    double window_bytes = 0;     // W
    double reference_bytes = 0;  // W_c
    uint32_t increase_stage = 0;
    uint32_t last_update = 0;  // sequence
    PacketTelemetry last{};
  };

  Needs needs() const override {
    return {.acknowledgements = true, .every_packet = true, .telemetry = true};
  }
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;

  std::string WhyNeverReplayed() const override {
    return "HPCC keeps a window, and what switches last reported, of each queue pair";
  }

  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }

 private:
  void OnOpen(FlowId queue_pair) override;
  void MeasureInflight(FlowId queue_pair, std::span<const HopTelemetry> hops);
  void ComputeWindow(FlowId queue_pair, bool is_new_round);

  double eta_ = 0;
  uint32_t max_stage_ = 0;
  uint64_t additive_increase_bytes_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
