// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/nstime.h>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements Swift (Kumar et al., SIGCOMM 2020, section 3). It steers a window, in packets, to a
// target delay.
//
//   target = base target + hops x per-hop delay + flow scaling
//   flow scaling = clamp(a / sqrt(window) - b, 0, range),
//                  a = range / (1/sqrt(least) - 1/sqrt(most)),  b = a / sqrt(most)
//   delay < target:  window += ai packets per window acknowledged (below 1: ai per packet)
//   delay > target:  window *= max(1 - beta (delay - target) / delay, 1 - largest decrease),
//                    no more than once per round trip
//   NACK, time-out:  window *= 1 - largest decrease, no more than once per round trip
//
// A window below one packet is one packet that is paced over 1 / window round trips.
//
// Only the fabric window is modelled. The delay is the round trip from the reading of the packet
// from memory to its ACK, and endpoints are never congested. A time-out is treated as a NACK, since
// the timers of RDMA NICs are longer than Swift's by orders of magnitude.
class Swift final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    double window_packets = 0;
    int64_t last_decrease_ps = 0;
    int64_t rtt_ps = 0;  // of the last ACK
  };

  Needs needs() const override { return {.acknowledgements = true, .every_packet = true}; }
  std::string Contradiction() const override;
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;
  void OnNack(FlowId queue_pair, int64_t now_ps) override;
  void OnTimeout(FlowId queue_pair, int64_t now_ps) override;

  std::string WhyNeverReplayed() const override {
    return "Swift keeps a window of each queue pair";
  }

  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }
  // Returns the target delay for the current window, in ps.
  double TargetPs(FlowId queue_pair) const;

 private:
  void OnOpen(FlowId queue_pair) override;
  void Decrease(FlowId queue_pair, int64_t now_ps, double factor);
  void SetWindow(FlowId queue_pair, double window_packets);

  ns3::Time base_target_;
  ns3::Time hop_target_;
  ns3::Time scaling_range_;
  double scaling_window_min_ = 0;
  double scaling_window_max_ = 0;
  double additive_increase_ = 0;
  double beta_ = 0;
  double max_decrease_ = 0;
  double min_window_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
