// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ns3/nstime.h>

#include "simulator/state/field_table.h"
#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {

// Implements DCQCN's reaction point (Zhu et al., "Congestion control for large-scale RDMA
// deployments", SIGCOMM 2015, section 3.1). Each queue pair has a current rate R_C, a target rate
// R_T and an estimate alpha of how congested the path is.
//
//   CNP:                 R_T = R_C;  R_C = R_C (1 - alpha/2);  alpha = (1 - g) alpha + g;
//                        both timers and the byte counter start anew
//   alpha timer:         alpha = (1 - g) alpha
//   increase timer, or ByteCounter bytes sent; the iterations of both are counted separately:
//     fast recovery      while neither kind has had F iterations:   R_T stays
//     hyper increase     once both have had more than F:            R_T += i R_HAI, i = 1, 2, ...
//     additive increase  otherwise:                                 R_T += R_AI
//                        and then R_C = (R_T + R_C) / 2
//
// A queue pair starts without a limit. At its first CNP R_C is the line rate and alpha is 1. Once a
// full packet at R_C takes, to the picosecond, no longer than at line rate, the limit ends and the
// next CNP is a first one again (compare initial_alpha_value of ConnectX NICs). Rates count bytes
// on the wire.
//
// Not modelled: vendors' additions (clamping of the target, a rate to start with after the first
// CNP, a shortest time between two cuts).
class Dcqcn final : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();

  struct State {
    bool is_limited = false;
    uint64_t rate_bps = 0;
    uint64_t target_bps = 0;
    double alpha = 1;
    int64_t alpha_timer_ps = 0;     // when it expires next
    int64_t increase_timer_ps = 0;  // the same
    uint64_t counted_bytes = 0;     // since the byte counter's last iteration
    uint32_t timer_iterations = 0;
    uint32_t byte_iterations = 0;

    static constexpr auto Fields() {
      constexpr std::string_view kSetAnew =
          "it is read only while is_limited is set, and set with it";
      return FieldTable("DCQCN", field::Quiescent("is_limited", &State::is_limited),
                        field::NoState("rate_bps", &State::rate_bps, kSetAnew),
                        field::NoState("target_bps", &State::target_bps, kSetAnew),
                        field::NoState("alpha", &State::alpha, kSetAnew),
                        field::NoState("alpha_timer_ps", &State::alpha_timer_ps, kSetAnew),
                        field::NoState("increase_timer_ps", &State::increase_timer_ps, kSetAnew),
                        field::NoState("counted_bytes", &State::counted_bytes, kSetAnew),
                        field::NoState("timer_iterations", &State::timer_iterations, kSetAnew),
                        field::NoState("byte_iterations", &State::byte_iterations, kSetAnew));
    }
  };

  Needs needs() const override { return {.cnp = true}; }
  void OnSend(FlowId queue_pair, int64_t now_ps, uint32_t wire_bytes) override;
  void OnCnp(FlowId queue_pair, int64_t now_ps) override;

  std::string WhyNeverReplayed() const override { return {}; }
  void Visit(FlowId queue_pair, StateArchive& archive) override {
    VisitFields(states_[queue_pair], queue_pair, archive);
  }

  // Returns the state as of the last call for this queue pair.
  const State& state(FlowId queue_pair) const { return states_[queue_pair]; }

 private:
  void OnOpen(FlowId queue_pair) override;
  // Executes all timer expirations up to and including `now_ps`.
  void RunTimers(FlowId queue_pair, int64_t now_ps);
  void Increase(FlowId queue_pair, uint32_t& iterations);
  void SetRate(FlowId queue_pair);

  double alpha_gain_ = 0;
  ns3::Time alpha_timer_;
  ns3::Time increase_timer_;
  uint64_t byte_counter_ = 0;
  uint32_t fast_recovery_iterations_ = 0;
  uint64_t additive_increase_bps_ = 0;
  uint64_t hyper_increase_bps_ = 0;
  uint64_t min_rate_bps_ = 0;
  std::vector<State> states_;
};

}  // namespace railyard
