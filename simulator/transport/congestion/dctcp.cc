// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/dctcp.h"

#include <algorithm>

#include <ns3/double.h>

#include "simulator/transport/contract/sequence_distance.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Dctcp);

ns3::TypeId Dctcp::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Dctcp")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Dctcp>()
          .AddAttribute("Gain",
                        "Weight g of one observation window in alpha (RFC 8257, section 4.2: "
                        "1/16).",
                        ns3::DoubleValue(1.0 / 16), ns3::MakeDoubleAccessor(&Dctcp::gain_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("InitialAlpha",
                        "Alpha before the first observation window (RFC 8257, section 3.3: 1, so "
                        "that the first mark halves the window).",
                        ns3::DoubleValue(1), ns3::MakeDoubleAccessor(&Dctcp::initial_alpha_),
                        ns3::MakeDoubleChecker<double>(0, 1));
  return type_id;
}

void Dctcp::OnOpen(FlowId queue_pair) {
  states_.push_back({.alpha = initial_alpha_,
                     .window_bytes = static_cast<double>(properties(queue_pair).window_bytes)});
}

void Dctcp::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  State& state = states_[queue_pair];
  state.acknowledged_packets += ack.acknowledged_packets;
  state.marked_packets += ack.marked_packets;
  if (SequenceDistance(ack.expected_sequence, state.window_end) <= 0) return;
  state.window_end = ack.next_sequence;
  if (state.acknowledged_packets == 0) return;
  const double marked_share =
      std::min(1.0, static_cast<double>(state.marked_packets) / state.acknowledged_packets);
  state.alpha = (1 - gain_) * state.alpha + gain_ * marked_share;
  if (state.marked_packets > 0) {
    SetWindow(queue_pair, state.window_bytes * (1 - state.alpha / 2));
  } else if (!state.has_lost) {
    SetWindow(queue_pair, state.window_bytes + properties(queue_pair).mtu_bytes);
  }
  state.acknowledged_packets = 0;
  state.marked_packets = 0;
  state.has_lost = false;
}

void Dctcp::OnNack(FlowId queue_pair, int64_t /*now_ps*/) {
  State& state = states_[queue_pair];
  if (state.has_lost) return;
  state.has_lost = true;
  SetWindow(queue_pair, state.window_bytes / 2);
}

void Dctcp::OnTimeout(FlowId queue_pair, int64_t now_ps) { OnNack(queue_pair, now_ps); }

void Dctcp::SetWindow(FlowId queue_pair, double window_bytes) {
  const ControlledQueuePair& own = properties(queue_pair);
  State& state = states_[queue_pair];
  state.window_bytes = std::clamp(window_bytes, static_cast<double>(own.mtu_bytes),
                                  static_cast<double>(own.window_bytes));
  SetLimits(queue_pair, {.window_bytes = static_cast<uint64_t>(state.window_bytes)});
}

}  // namespace railyard
