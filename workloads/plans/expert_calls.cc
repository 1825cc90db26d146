// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/expert_calls.h"

namespace railyard {

ExpertCalls::ExpertCalls(const Plan& plan, uint32_t communicator, uint32_t place,
                         ProgramWriter& writer)
    : model_(plan.model),
      dispatch_(DatatypeOf(plan.routing.dispatch_precision.value_or(plan.model.precision))),
      combine_(DatatypeOf(plan.model.precision)),
      communicator_(communicator),
      place_(place),
      writer_(writer) {}

void ExpertCalls::GatherCounts() {
  writer_.Collective({.kind = CollectiveKind::kAllGather,
                      .communicator = communicator_,
                      .count = model_.experts->count,
                      .datatype = Datatype::kInt64});
}

void ExpertCalls::Dispatch(const ExpertExchange& exchange) { AllToAllV(exchange, true); }

void ExpertCalls::Combine(const ExpertExchange& exchange) { AllToAllV(exchange, false); }

void ExpertCalls::AllToAllV(const ExpertExchange& exchange, bool is_dispatch) {
  ++count_;
  std::vector<TraceOperation> calls;
  const auto add = [&](CollectiveKind kind, uint32_t peer, uint64_t tokens) {
    if (tokens == 0) return;
    calls.push_back({.kind = kind,
                     .communicator = communicator_,
                     .count = tokens * model_.hidden,
                     .datatype = is_dispatch ? dispatch_ : combine_,
                     .peer = peer,
                     .group = count_,
                     .all_to_all = count_});
  };
  for (uint32_t peer = 0; peer < exchange.ranks; ++peer) {
    const uint32_t there = exchange.Tokens(place_, peer);
    const uint32_t back = exchange.Tokens(peer, place_);
    add(CollectiveKind::kSend, peer, is_dispatch ? there : back);
    add(CollectiveKind::kRecv, peer, is_dispatch ? back : there);
  }
  writer_.Group(calls);
}

}  // namespace railyard
