// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/nstime.h>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1). Its rate follows the gradient of
// round-trip times, with one sample per ACK.
//
//   difference = (1 - w) difference + w (rtt - previous rtt);  gradient = difference / min rtt
//   rtt < T_low:        rate += delta
//   rtt > T_high:       rate *= 1 - beta (1 - T_high / rtt)
//   gradient <= 0:      rate += n delta, n = 5 after five such samples in a row, else 1
//   else:               rate *= 1 - beta gradient
//
// A queue pair starts at line rate and has no limit whenever it is at line rate. The round trip
// begins when the packet is read from memory, so it includes PCIe; the min rtt is that of an idle
// fabric. By default delta and the least rate are fractions of the line rate.
class Timely final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    double rate_bps = 0;
    double difference_ps = 0;
    int64_t previous_rtt_ps = 0;   // 0: no sample yet
    uint32_t falling_samples = 0;  // in a row
  };

  Needs needs() const override { return {.acknowledgements = true}; }
  std::string Contradiction() const override;
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;

  std::string WhyNeverReplayed() const override {
    return "TIMELY keeps a rate and the last round trip of each queue pair";
  }

  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }

 private:
  void OnOpen(FlowId queue_pair) override;

  double difference_weight_ = 0;
  double beta_ = 0;
  uint64_t delta_bps_ = 0;
  uint32_t hyper_samples_ = 0;
  ns3::Time low_;
  ns3::Time high_;
  uint64_t min_rate_bps_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
