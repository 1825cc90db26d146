// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/timely.h"

#include <algorithm>

#include <fmt/format.h>

#include <ns3/double.h>
#include <ns3/uinteger.h>

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Timely);

ns3::TypeId Timely::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Timely")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Timely>()
          .AddAttribute("DifferenceWeight",
                        "Weight of a new sample in the mean of differences (Zhu et al., \"ECN or "
                        "delay\", CoNEXT 2016, table 2: 0.875).",
                        ns3::DoubleValue(0.875),
                        ns3::MakeDoubleAccessor(&Timely::difference_weight_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("Beta", "Multiplicative decrease (SIGCOMM 2015, section 5: 0.8).",
                        ns3::DoubleValue(0.8), ns3::MakeDoubleAccessor(&Timely::beta_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("DeltaBps",
                        "Additive increase in bit/s; 0 is a thousandth of line rate (SIGCOMM 2015, "
                        "section 5: 10 Mb/s of 10 Gb/s; simulation/run.py of "
                        "alibaba-edu/High-Precision-Congestion-Control scales it so).",
                        ns3::UintegerValue(0), ns3::MakeUintegerAccessor(&Timely::delta_bps_),
                        ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute("HyperSamples",
                        "Falling samples in a row, and factor of the increase, of hyperactive "
                        "increase (SIGCOMM 2015, section 4.3: 5).",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Timely::hyper_samples_),
                        ns3::MakeUintegerChecker<uint32_t>(1))
          .AddAttribute("LowThreshold", "T_low (SIGCOMM 2015, section 5: 50 us).",
                        ns3::TimeValue(ns3::MicroSeconds(50)), ns3::MakeTimeAccessor(&Timely::low_),
                        ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("HighThreshold", "T_high (SIGCOMM 2015, section 5: 500 us).",
                        ns3::TimeValue(ns3::MicroSeconds(500)),
                        ns3::MakeTimeAccessor(&Timely::high_), ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("MinRateBps",
                        "Lowest rate in bit/s; 0 is a hundredth of line rate (1 of "
                        "100 Gb/s in simulation/run.py of "
                        "alibaba-edu/High-Precision-Congestion-Control).",
                        ns3::UintegerValue(0), ns3::MakeUintegerAccessor(&Timely::min_rate_bps_),
                        ns3::MakeUintegerChecker<uint64_t>());
  return type_id;
}

std::string Timely::Contradiction() const {
  if (low_ <= high_) return {};
  return fmt::format(
      "the low threshold of {} ns is above the high one of {} ns (expected low_threshold <= "
      "high_threshold)",
      low_.GetNanoSeconds(), high_.GetNanoSeconds());
}

void Timely::OnOpen(FlowId queue_pair) {
  states_.push_back({.rate_bps = static_cast<double>(properties(queue_pair).line_rate_bps)});
}

void Timely::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  const ControlledQueuePair& own = properties(queue_pair);
  State& state = states_[queue_pair];
  const int64_t previous_ps = state.previous_rtt_ps == 0 ? ack.rtt_ps : state.previous_rtt_ps;
  state.previous_rtt_ps = ack.rtt_ps;
  state.difference_ps = (1 - difference_weight_) * state.difference_ps +
                        difference_weight_ * static_cast<double>(ack.rtt_ps - previous_ps);
  const double gradient =
      state.difference_ps / static_cast<double>(std::max<int64_t>(1, own.base_rtt_ps));
  const auto line_bps = static_cast<double>(own.line_rate_bps);
  const double delta_bps = delta_bps_ > 0 ? static_cast<double>(delta_bps_) : line_bps / 1'000;
  const double least_bps =
      min_rate_bps_ > 0 ? std::min(static_cast<double>(min_rate_bps_), line_bps) : line_bps / 100;
  state.falling_samples = gradient <= 0 ? state.falling_samples + 1 : 0;
  if (ack.rtt_ps < low_.GetPicoSeconds()) {
    state.rate_bps += delta_bps;
  } else if (ack.rtt_ps > high_.GetPicoSeconds()) {
    const double ratio =
        static_cast<double>(high_.GetPicoSeconds()) / static_cast<double>(ack.rtt_ps);
    state.rate_bps *= 1 - beta_ * (1 - ratio);
  } else if (gradient <= 0) {
    state.rate_bps += delta_bps * (state.falling_samples >= hyper_samples_ ? hyper_samples_ : 1);
  } else {
    state.rate_bps *= std::max(0.0, 1 - beta_ * gradient);
  }
  state.rate_bps = std::clamp(state.rate_bps, least_bps, line_bps);
  const bool is_limited = state.rate_bps < line_bps;
  SetLimits(queue_pair, is_limited ? SendLimits{.rate_bps = static_cast<uint64_t>(state.rate_bps)}
                                   : SendLimits{});
}

}  // namespace railyard
