// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/cubic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ns3/double.h>
#include <ns3/uinteger.h>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/units/units.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Cubic);

ns3::TypeId Cubic::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Cubic")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Cubic>()
          .AddAttribute(
              "Beta", "Share of the window that remains after a loss (RFC 9438, section 4.6: 0.7).",
              ns3::DoubleValue(0.7), ns3::MakeDoubleAccessor(&Cubic::beta_),
              ns3::MakeDoubleChecker<double>(0.1, 0.9))
          .AddAttribute("Scaling",
                        "C, the growth of the window, in segments per second cubed (RFC 9438, "
                        "section 5.1: 0.4).",
                        ns3::DoubleValue(0.4), ns3::MakeDoubleAccessor(&Cubic::scaling_),
                        ns3::MakeDoubleChecker<double>(1e-3, 1e9))
          .AddAttribute("InitialWindowPackets",
                        "Segments that a stream may send before its first ACK (RFC 6928: 10).",
                        ns3::UintegerValue(10),
                        ns3::MakeUintegerAccessor(&Cubic::initial_window_packets_),
                        ns3::MakeUintegerChecker<uint32_t>(1, 65'535));
  return type_id;
}

void Cubic::OnOpen(FlowId queue_pair) {
  states_.push_back({.window = static_cast<double>(initial_window_packets_),
                     .threshold = std::numeric_limits<double>::infinity(),
                     .rtt_ps = properties(queue_pair).base_rtt_ps});
  Apply(queue_pair);
}

void Cubic::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  State& state = states_[queue_pair];
  state.next_sequence = ack.next_sequence;
  if (ack.acknowledged_packets == 0) return;
  if (ack.rtt_ps > 0) state.rtt_ps = ack.rtt_ps;
  if (state.in_recovery) {
    if (SequenceDistance(ack.expected_sequence, state.recovery_end) < 0) return;
    state.in_recovery = false;
  }
  const double under_way =
      static_cast<double>(ack.next_sequence - ack.expected_sequence) + ack.acknowledged_packets;
  if (state.window < state.threshold) {
    if (state.window >= 2 * under_way) return;
    state.window += ack.acknowledged_packets;
  } else {
    if (std::floor(state.window) > under_way) return;
    Avoid(state, ack.acknowledged_packets, ack.now_ps);
  }
  Apply(queue_pair);
}

void Cubic::Avoid(State& state, uint32_t acknowledged, int64_t now_ps) const {
  if (state.epoch_ps < 0) {
    state.epoch_ps = now_ps;
    state.window_at_cut = state.window;
    state.window_max = std::max(state.window_max, state.window);
    state.reno_window = state.window;
  }
  const auto seconds = [](int64_t ps) {
    return static_cast<double>(ps) / static_cast<double>(kPsPerSecond);
  };
  const double k = std::cbrt((state.window_max - state.window_at_cut) / scaling_);
  const auto window_at = [&](double t) {
    return scaling_ * (t - k) * (t - k) * (t - k) + state.window_max;
  };
  const double t = seconds(now_ps - state.epoch_ps);
  const double target =
      std::clamp(window_at(t + seconds(state.rtt_ps)), state.window, 1.5 * state.window);
  const double alpha =
      state.reno_window < state.window_before_cut ? 3 * (1 - beta_) / (1 + beta_) : 1;
  state.reno_window += alpha * acknowledged / state.window;
  if (window_at(t) < state.reno_window) {
    state.window = std::max(state.window, state.reno_window);
  } else {
    state.window += (target - state.window) / state.window * acknowledged;
  }
}

void Cubic::Cut(State& state) const {
  state.window_max =
      state.window < state.window_max ? state.window * (1 + beta_) / 2 : state.window;
  state.window_before_cut = state.window;
  state.threshold = std::max(2.0, state.window * beta_);
  state.epoch_ps = -1;
  state.recovery_end = state.next_sequence;
}

void Cubic::OnNack(FlowId queue_pair, int64_t /*now_ps*/) {
  State& state = states_[queue_pair];
  if (state.in_recovery) return;
  Cut(state);
  state.window = state.threshold;
  state.in_recovery = true;
  Apply(queue_pair);
}

void Cubic::OnTimeout(FlowId queue_pair, int64_t /*now_ps*/) {
  State& state = states_[queue_pair];
  // A retransmission that is lost as well is not new congestion (RFC 5681, section 3.1).
  if (state.window > 1) Cut(state);
  state.window = 1;
  state.in_recovery = false;
  Apply(queue_pair);
}

void Cubic::Apply(FlowId queue_pair) {
  const ControlledQueuePair& own = properties(queue_pair);
  State& state = states_[queue_pair];
  const double window_max =
      std::max(1.0, static_cast<double>(own.window_bytes) / static_cast<double>(own.mtu_bytes));
  state.window = std::min(state.window, window_max);
  SetLimits(queue_pair,
            {.window_bytes = static_cast<uint64_t>(std::floor(state.window)) * own.mtu_bytes});
}

}  // namespace railyard
