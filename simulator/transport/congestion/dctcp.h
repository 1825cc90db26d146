// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements DCTCP's reaction to marks (RFC 8257, section 3.3) on a queue pair's window. An
// observation window ends when everything that was sent before its start is acknowledged. F is the
// share of packets in it that arrived marked:
//
//   alpha = (1 - g) alpha + g F
//   window = window (1 - alpha/2)   if any was marked, once per observation window
//   window += MTU                   else, unless a loss has halved the window
//
// A queue pair starts with the NIC's whole window, as RDMA NICs start at line rate, and never
// exceeds it. A NACK or a time-out halves the window (RFC 5681), no more than once per observation
// window.
//
// Not modelled: TCP's slow start; delayed ACKs' own state machine (an ACK carries the number of
// marked packets itself).
class Dctcp final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    double alpha = 1;
    double window_bytes = 0;
    uint32_t acknowledged_packets = 0;  // in this observation window
    uint32_t marked_packets = 0;        // the same
    uint32_t window_end = 0;            // sequence that ends it
    bool has_lost = false;              // in this observation window
  };

  Needs needs() const override { return {.acknowledgements = true, .every_packet = true}; }
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;
  void OnNack(FlowId queue_pair, int64_t now_ps) override;
  void OnTimeout(FlowId queue_pair, int64_t now_ps) override;

  std::string WhyNeverReplayed() const override {
    return "DCTCP keeps a window, and how often packets were marked, of each queue pair";
  }

  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }

 private:
  void OnOpen(FlowId queue_pair) override;
  void SetWindow(FlowId queue_pair, double window_bytes);

  double gain_ = 0;
  double initial_alpha_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
