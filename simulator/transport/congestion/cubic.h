// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements CUBIC (RFC 9438), Linux's default for TCP. Windows are in segments, t in seconds since
// the window was last cut:
//
//   slow start       window += acknowledged                        while window < ssthresh
//   avoidance        W(t) = C (t - K)^3 + W_max, K = cbrt((W_max - window at the cut) / C)
//                    window += (target - window) / window          per acknowledged segment
//                    target = W(t + RTT), from window to 1.5 windows
//   where W_est, the window that Reno would have, is larger: window = W_est
//   loss             W_max = window, or window (1 + beta) / 2 where it was below the last W_max
//                    ssthresh = beta window; window = ssthresh, after a time-out 1
//
// A window grows only while it limits the stream (RFC 9438, section 5.8; Linux,
// tcp_is_cwnd_limited), and is cut once for all losses of the segments in flight.
//
// Not modelled: HyStart++ (RFC 9406), so slow start ends by a loss; undoing a cut that was
// spurious; restarting after idleness.
class Cubic final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    double window = 0;  // segments
    double threshold = 0;
    double window_max = 0;
    double window_before_cut = 0;  // cwnd_prior
    double window_at_cut = 0;      // cwnd_epoch
    double reno_window = 0;        // W_est
    int64_t epoch_ps = -1;         // -1: avoidance has not begun since the cut
    int64_t rtt_ps = 0;            // of the newest sample
    uint32_t recovery_end = 0;     // sequence; the window does not grow below it
    uint32_t next_sequence = 0;    // as of the last ACK
    bool in_recovery = false;
  };

  Needs needs() const override { return {.acknowledgements = true}; }
  void OnAcknowledged(FlowId queue_pair, const AckInfo& ack) override;
  void OnNack(FlowId queue_pair, int64_t now_ps) override;
  void OnTimeout(FlowId queue_pair, int64_t now_ps) override;

  std::string WhyNeverReplayed() const override { return "CUBIC keeps the windows of each stream"; }

  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }

 private:
  void OnOpen(FlowId queue_pair) override;
  void Avoid(State& state, uint32_t acknowledged, int64_t now_ps) const;
  void Cut(State& state) const;
  void Apply(FlowId queue_pair);

  double beta_ = 0;
  double scaling_ = 0;
  uint32_t initial_window_packets_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
