// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/swift.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <ns3/double.h>

#include "simulator/units/units.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Swift);

ns3::TypeId Swift::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Swift")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Swift>()
          .AddAttribute("BaseTarget",
                        "Target delay before hops and flow scaling (assumed: about twice the round "
                        "trip of an idle two-tier fabric; SIGCOMM 2020, section 3.1, leaves it to "
                        "the operator).",
                        ns3::TimeValue(ns3::MicroSeconds(15)),
                        ns3::MakeTimeAccessor(&Swift::base_target_),
                        ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("HopTarget",
                        "Target delay per link (assumed: propagation, forwarding and serialisation "
                        "of a packet at 400 Gb/s; SIGCOMM 2020, section 3.5).",
                        ns3::TimeValue(ns3::MicroSeconds(1)),
                        ns3::MakeTimeAccessor(&Swift::hop_target_),
                        ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("ScalingRange",
                        "Most that flow scaling adds to the target (assumed: as BaseTarget; "
                        "SIGCOMM 2020, section 3.5).",
                        ns3::TimeValue(ns3::MicroSeconds(15)),
                        ns3::MakeTimeAccessor(&Swift::scaling_range_),
                        ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("ScalingWindowMin",
                        "Window, in packets, up to which flow scaling adds all of its range "
                        "(SIGCOMM 2020, section 3.5: 0.1).",
                        ns3::DoubleValue(0.1), ns3::MakeDoubleAccessor(&Swift::scaling_window_min_),
                        ns3::MakeDoubleChecker<double>(0.001))
          .AddAttribute("ScalingWindowMax",
                        "Window, in packets, from which flow scaling adds nothing (SIGCOMM 2020, "
                        "section 3.5: 100).",
                        ns3::DoubleValue(100), ns3::MakeDoubleAccessor(&Swift::scaling_window_max_),
                        ns3::MakeDoubleChecker<double>(0.001))
          .AddAttribute("AdditiveIncrease",
                        "ai, packets per round trip (SIGCOMM 2020, algorithm 1; 1 is assumed).",
                        ns3::DoubleValue(1), ns3::MakeDoubleAccessor(&Swift::additive_increase_),
                        ns3::MakeDoubleChecker<double>(0))
          .AddAttribute("Beta",
                        "Multiplicative decrease (SIGCOMM 2020, algorithm 1; 0.8 is assumed).",
                        ns3::DoubleValue(0.8), ns3::MakeDoubleAccessor(&Swift::beta_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("MaxDecrease",
                        "max_mdf, largest decrease at once (SIGCOMM 2020, algorithm 1; 0.5 is "
                        "assumed).",
                        ns3::DoubleValue(0.5), ns3::MakeDoubleAccessor(&Swift::max_decrease_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("MinWindow",
                        "Least window, in packets (assumed: as ScalingWindowMin, 0.1 in "
                        "SIGCOMM 2020, section 3.5).",
                        ns3::DoubleValue(0.1), ns3::MakeDoubleAccessor(&Swift::min_window_),
                        ns3::MakeDoubleChecker<double>(0.001));
  return type_id;
}

void Swift::OnOpen(FlowId queue_pair) {
  const ControlledQueuePair& own = properties(queue_pair);
  State state;
  state.window_packets =
      std::max(1.0, static_cast<double>(own.window_bytes) / static_cast<double>(own.mtu_bytes));
  state.rtt_ps = own.base_rtt_ps;
  states_.push_back(state);
}

std::string Swift::Contradiction() const {
  if (scaling_window_min_ < scaling_window_max_) return {};
  return fmt::format(
      "the least window of flow scaling, of {} packets, is not below the largest, of {} (expected "
      "scaling_window_min < scaling_window_max)",
      scaling_window_min_, scaling_window_max_);
}

double Swift::TargetPs(FlowId queue_pair) const {
  const double inverse_max = 1 / std::sqrt(scaling_window_max_);
  const double span = 1 / std::sqrt(scaling_window_min_) - inverse_max;
  const auto range_ps = static_cast<double>(scaling_range_.GetPicoSeconds());
  const double inverse = 1 / std::sqrt(states_[queue_pair].window_packets);
  const double scaling_ps = std::clamp(range_ps * (inverse - inverse_max) / span, 0.0, range_ps);
  return static_cast<double>(base_target_.GetPicoSeconds()) +
         static_cast<double>(hop_target_.GetPicoSeconds()) * properties(queue_pair).hop_count +
         scaling_ps;
}

void Swift::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  State& state = states_[queue_pair];
  state.rtt_ps = ack.rtt_ps;
  const double target_ps = TargetPs(queue_pair);
  const auto delay_ps = static_cast<double>(ack.rtt_ps);
  if (delay_ps < target_ps) {
    const double acknowledged = ack.acknowledged_packets;
    const double per_packet = additive_increase_ / std::max(1.0, state.window_packets);
    SetWindow(queue_pair, state.window_packets + acknowledged * per_packet);
  } else {
    Decrease(queue_pair, ack.now_ps,
             std::max(1 - beta_ * (delay_ps - target_ps) / delay_ps, 1 - max_decrease_));
  }
}

void Swift::OnNack(FlowId queue_pair, int64_t now_ps) {
  Decrease(queue_pair, now_ps, 1 - max_decrease_);
}

void Swift::OnTimeout(FlowId queue_pair, int64_t now_ps) { OnNack(queue_pair, now_ps); }

void Swift::Decrease(FlowId queue_pair, int64_t now_ps, double factor) {
  State& state = states_[queue_pair];
  if (now_ps - state.last_decrease_ps < state.rtt_ps) return;
  state.last_decrease_ps = now_ps;
  SetWindow(queue_pair, state.window_packets * factor);
}

void Swift::SetWindow(FlowId queue_pair, double window_packets) {
  const ControlledQueuePair& own = properties(queue_pair);
  State& state = states_[queue_pair];
  const double most =
      std::max(1.0, static_cast<double>(own.window_bytes) / static_cast<double>(own.mtu_bytes));
  state.window_packets = std::clamp(window_packets, std::min(min_window_, most), most);
  SendLimits limits;
  limits.window_bytes = static_cast<uint64_t>(std::max(1.0, state.window_packets) *
                                              static_cast<double>(own.mtu_bytes));
  if (state.window_packets < 1) {
    const double interval_ps =
        static_cast<double>(std::max<int64_t>(1, state.rtt_ps)) / state.window_packets;
    limits.rate_bps =
        std::clamp<uint64_t>(static_cast<uint64_t>(8.0 * own.full_packet_wire_bytes *
                                                   static_cast<double>(kPsPerSecond) / interval_ps),
                             1, own.line_rate_bps);
  }
  SetLimits(queue_pair, limits);
}

}  // namespace railyard
