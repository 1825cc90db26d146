// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/dcqcn.h"

#include <algorithm>

#include <ns3/double.h>
#include <ns3/uinteger.h>

#include "simulator/units/units.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Dcqcn);

ns3::TypeId Dcqcn::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Dcqcn")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Dcqcn>()
          .AddAttribute("AlphaGain",
                        "Weight g of one update of alpha (SIGCOMM 2015, figure 14: 1/256).",
                        ns3::DoubleValue(1.0 / 256), ns3::MakeDoubleAccessor(&Dcqcn::alpha_gain_),
                        ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("AlphaTimer",
                        "Time after which alpha decays without a CNP (SIGCOMM 2015, section 3.1: "
                        "K = 55 us).",
                        ns3::TimeValue(ns3::MicroSeconds(55)),
                        ns3::MakeTimeAccessor(&Dcqcn::alpha_timer_),
                        ns3::MakeTimeChecker(ns3::NanoSeconds(1)))
          .AddAttribute("IncreaseTimer",
                        "Time after which the rate rises (SIGCOMM 2015, figure 14: T = 55 us).",
                        ns3::TimeValue(ns3::MicroSeconds(55)),
                        ns3::MakeTimeAccessor(&Dcqcn::increase_timer_),
                        ns3::MakeTimeChecker(ns3::NanoSeconds(1)))
          .AddAttribute("ByteCounterBytes",
                        "Bytes sent after which the rate rises (SIGCOMM 2015, figure 14: "
                        "B = 10 MB).",
                        ns3::UintegerValue(10'000'000),
                        ns3::MakeUintegerAccessor(&Dcqcn::byte_counter_),
                        ns3::MakeUintegerChecker<uint64_t>(1))
          .AddAttribute("FastRecoveryIterations",
                        "Iterations F of fast recovery (SIGCOMM 2015, section 3.1: 5).",
                        ns3::UintegerValue(5),
                        ns3::MakeUintegerAccessor(&Dcqcn::fast_recovery_iterations_),
                        ns3::MakeUintegerChecker<uint32_t>())
          .AddAttribute("AdditiveIncreaseBps",
                        "R_AI in bit/s (SIGCOMM 2015, section 3.1: 40 Mb/s, for 40 Gb/s ports).",
                        ns3::UintegerValue(40'000'000),
                        ns3::MakeUintegerAccessor(&Dcqcn::additive_increase_bps_),
                        ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute("HyperIncreaseBps",
                        "R_HAI in bit/s (not in the paper; ten times R_AI, as in the configuration "
                        "of alibaba-edu/High-Precision-Congestion-Control).",
                        ns3::UintegerValue(400'000'000),
                        ns3::MakeUintegerAccessor(&Dcqcn::hyper_increase_bps_),
                        ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute("MinRateBps", "Lowest rate in bit/s (100 Mb/s in the same configuration).",
                        ns3::UintegerValue(100'000'000),
                        ns3::MakeUintegerAccessor(&Dcqcn::min_rate_bps_),
                        ns3::MakeUintegerChecker<uint64_t>(1));
  return type_id;
}

void Dcqcn::OnOpen(FlowId /*queue_pair*/) { states_.emplace_back(); }

void Dcqcn::OnCnp(FlowId queue_pair, int64_t now_ps) {
  State& state = states_[queue_pair];
  RunTimers(queue_pair, now_ps);
  if (!state.is_limited) {
    state = {.is_limited = true, .rate_bps = properties(queue_pair).line_rate_bps};
  }
  state.target_bps = state.rate_bps;
  const auto cut_bps =
      static_cast<uint64_t>(static_cast<double>(state.rate_bps) * (1 - state.alpha / 2));
  state.rate_bps = std::max(cut_bps, std::min(min_rate_bps_, state.rate_bps));
  state.alpha = (1 - alpha_gain_) * state.alpha + alpha_gain_;
  state.alpha_timer_ps = now_ps + alpha_timer_.GetPicoSeconds();
  state.increase_timer_ps = now_ps + increase_timer_.GetPicoSeconds();
  state.counted_bytes = 0;
  state.timer_iterations = 0;
  state.byte_iterations = 0;
  SetRate(queue_pair);
}

void Dcqcn::OnSend(FlowId queue_pair, int64_t now_ps, uint32_t wire_bytes) {
  RunTimers(queue_pair, now_ps);
  State& state = states_[queue_pair];
  if (!state.is_limited) return;
  state.counted_bytes += wire_bytes;
  if (state.counted_bytes < byte_counter_) return;
  state.counted_bytes -= byte_counter_;
  Increase(queue_pair, state.byte_iterations);
}

void Dcqcn::RunTimers(FlowId queue_pair, int64_t now_ps) {
  State& state = states_[queue_pair];
  // Alpha and the rates do not depend on each other between two CNPs.
  while (state.is_limited && state.increase_timer_ps <= now_ps) {
    state.increase_timer_ps += increase_timer_.GetPicoSeconds();
    Increase(queue_pair, state.timer_iterations);
  }
  while (state.is_limited && state.alpha_timer_ps <= now_ps) {
    state.alpha_timer_ps += alpha_timer_.GetPicoSeconds();
    state.alpha *= 1 - alpha_gain_;
  }
}

void Dcqcn::Increase(FlowId queue_pair, uint32_t& iterations) {
  State& state = states_[queue_pair];
  const auto [fewer, more] = std::minmax(state.timer_iterations, state.byte_iterations);
  unsigned __int128 target_bps = state.target_bps;  // increases may have 64 bits
  if (fewer > fast_recovery_iterations_) {
    const uint32_t further = fewer - fast_recovery_iterations_;
    target_bps += static_cast<unsigned __int128>(further) * hyper_increase_bps_;
  } else if (more >= fast_recovery_iterations_) {
    target_bps += additive_increase_bps_;
  }
  ++iterations;
  state.target_bps = static_cast<uint64_t>(
      std::min<unsigned __int128>(target_bps, properties(queue_pair).line_rate_bps));
  state.rate_bps = (state.target_bps + state.rate_bps + 1) / 2;
  SetRate(queue_pair);
}

void Dcqcn::SetRate(FlowId queue_pair) {
  State& state = states_[queue_pair];
  const ControlledQueuePair& own = properties(queue_pair);
  state.is_limited = TransferTimePs(own.full_packet_wire_bytes, state.rate_bps) >
                     TransferTimePs(own.full_packet_wire_bytes, own.line_rate_bps) + 1;
  SetLimits(queue_pair, state.is_limited ? SendLimits{.rate_bps = state.rate_bps} : SendLimits{});
}

}  // namespace railyard
