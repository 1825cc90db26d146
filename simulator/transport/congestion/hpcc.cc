// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/hpcc.h"

#include <algorithm>
#include <cmath>

#include <ns3/double.h>
#include <ns3/uinteger.h>

#include "simulator/transport/contract/sequence_distance.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr double kBitsPerByte = 8;

// Returns the bytes that a link of that rate moves in a time.
double BytesIn(uint64_t rate_bps, double time_ps) {
  return static_cast<double>(rate_bps) / kBitsPerByte * time_ps / static_cast<double>(kPsPerSecond);
}

// Returns B T of a queue pair, but at least one packet, also if the queue pair has no path yet.
double FullWindowBytes(const ControlledQueuePair& own) {
  return std::max(static_cast<double>(own.full_packet_wire_bytes),
                  BytesIn(own.line_rate_bps, static_cast<double>(own.base_rtt_ps)));
}

// Returns the payload of the packets that may be in flight with a window of so many bytes on the
// wire. A packet is sent while fewer bytes than the window are in flight, so the last one may
// exceed it.
uint64_t PayloadWindowBytes(const ControlledQueuePair& own, double window_bytes) {
  const double packets = std::ceil(window_bytes / own.full_packet_wire_bytes);
  return static_cast<uint64_t>(packets) * own.mtu_bytes;
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Hpcc);

ns3::TypeId Hpcc::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Hpcc")
          .SetParent<CongestionControl>()
          .SetGroupName("Railyard")
          .AddConstructor<Hpcc>()
          .AddAttribute("Eta", "Target utilization (SIGCOMM 2019, section 5.1: 95 %).",
                        ns3::DoubleValue(0.95), ns3::MakeDoubleAccessor(&Hpcc::eta_),
                        ns3::MakeDoubleChecker<double>(0.01, 1))
          .AddAttribute("MaxStage",
                        "Additive increases before a multiplicative one (SIGCOMM 2019, section "
                        "5.1: 5).",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Hpcc::max_stage_),
                        ns3::MakeUintegerChecker<uint32_t>())
          .AddAttribute("AdditiveIncreaseBytes", "W_AI in bytes (SIGCOMM 2019, section 5.1: 80).",
                        ns3::UintegerValue(80),
                        ns3::MakeUintegerAccessor(&Hpcc::additive_increase_bytes_),
                        ns3::MakeUintegerChecker<uint64_t>());
  return type_id;
}

void Hpcc::OnOpen(FlowId queue_pair) {
  const double window_bytes = FullWindowBytes(properties(queue_pair));
  states_.push_back({.window_bytes = window_bytes, .reference_bytes = window_bytes});
  SetLimits(queue_pair, {.window_bytes = PayloadWindowBytes(properties(queue_pair), window_bytes)});
}

void Hpcc::OnAcknowledged(FlowId queue_pair, const AckInfo& ack) {
  State& state = states_[queue_pair];
  if (ack.telemetry.empty()) return;
  // The first report, and the first one after a change of the path's length, has no predecessor.
  const bool has_last = state.last.hop_count == ack.telemetry.size();
  if (has_last) {
    MeasureInflight(queue_pair, ack.telemetry);
    const bool is_new_round = SequenceDistance(ack.expected_sequence, state.last_update) > 0;
    ComputeWindow(queue_pair, is_new_round);
    if (is_new_round) state.last_update = ack.next_sequence;
  }
  std::copy(ack.telemetry.begin(), ack.telemetry.end(), state.last.hops.begin());
  state.last.hop_count = static_cast<uint32_t>(ack.telemetry.size());
}

void Hpcc::MeasureInflight(FlowId queue_pair, std::span<const HopTelemetry> hops) {
  State& state = states_[queue_pair];
  const auto base_ps =
      static_cast<double>(std::max<int64_t>(1, properties(queue_pair).base_rtt_ps));
  double most = 0;
  double tau_ps = 0;
  for (size_t hop = 0; hop < hops.size(); ++hop) {
    const HopTelemetry& now = hops[hop];
    const HopTelemetry& before = state.last.hops[hop];
    if (now.link != before.link) continue;  // the path has changed
    const auto elapsed_ps = static_cast<double>(now.time_ps - before.time_ps);
    if (elapsed_ps <= 0) continue;
    const auto backlog_bytes =
        static_cast<double>(std::min(now.backlog_bytes, before.backlog_bytes));
    // Backlogs are rounded down to bytes, so that the difference of two may be one too small.
    const auto sent_bytes = std::max<int64_t>(
        0, static_cast<int64_t>(now.sent_bytes) - static_cast<int64_t>(before.sent_bytes));
    const double use = backlog_bytes / BytesIn(now.rate_bps, base_ps) +
                       static_cast<double>(sent_bytes) / BytesIn(now.rate_bps, elapsed_ps);
    if (use <= most) continue;
    most = use;
    tau_ps = elapsed_ps;
  }
  const double weight = std::min(tau_ps, base_ps) / base_ps;
  state.utilization = (1 - weight) * state.utilization + weight * most;
}

void Hpcc::ComputeWindow(FlowId queue_pair, bool is_new_round) {
  State& state = states_[queue_pair];
  const ControlledQueuePair& own = properties(queue_pair);
  const auto additive_bytes = static_cast<double>(additive_increase_bytes_);
  const bool is_multiplicative = state.utilization >= eta_ || state.increase_stage >= max_stage_;
  const double full_bytes = FullWindowBytes(own);
  const double window_bytes =
      is_multiplicative && state.utilization > 0
          ? state.reference_bytes / (state.utilization / eta_) + additive_bytes
          : state.reference_bytes + additive_bytes;
  state.window_bytes = std::min(window_bytes, full_bytes);
  if (is_new_round) {
    state.increase_stage = is_multiplicative ? 0 : state.increase_stage + 1;
    state.reference_bytes = state.window_bytes;
  }
  SendLimits limits{.window_bytes = PayloadWindowBytes(own, state.window_bytes)};
  if (state.window_bytes < full_bytes) {
    const double share = state.window_bytes / full_bytes;
    limits.rate_bps = std::max<uint64_t>(
        1, static_cast<uint64_t>(share * static_cast<double>(own.line_rate_bps)));
  }
  SetLimits(queue_pair, limits);
}

}  // namespace railyard
