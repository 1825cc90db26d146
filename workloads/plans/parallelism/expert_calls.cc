// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/expert_calls.h"

#include "workloads/collectives/hierarchical_exchange.h"

namespace railyard {

ExpertCalls::ExpertCalls(const Plan& plan, uint32_t communicator, uint32_t place,
                         ProgramWriter& writer)
    : model_(plan.model),
      hierarchical_groups_of_(plan.routing.hierarchical_groups_of),
      loss_tolerance_ppm_(plan.routing.loss_tolerance_ppm),
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
  const Datatype datatype = is_dispatch ? dispatch_ : combine_;
  const Tokens tokens = [&](uint32_t from, uint32_t to) -> uint64_t {
    return is_dispatch ? exchange.Tokens(from, to) : exchange.Tokens(to, from);
  };
  if (hierarchical_groups_of_ == 0) {
    Exchange(exchange.ranks, datatype, tokens);
    return;
  }
  const HierarchicalExchange hierarchy{exchange.ranks, hierarchical_groups_of_};
  for (const ExchangeStep step : {ExchangeStep::kWithinGroups, ExchangeStep::kBetweenGroups}) {
    Exchange(exchange.ranks, datatype,
             [&](uint32_t from, uint32_t to) { return hierarchy.Units(step, from, to, tokens); });
  }
}

void ExpertCalls::Exchange(uint32_t ranks, Datatype datatype, const Tokens& tokens) {
  ++count_;
  std::vector<TraceOperation> calls;
  const auto add = [&](CollectiveKind kind, uint32_t peer, uint64_t count) {
    if (count == 0) return;
    calls.push_back({.kind = kind,
                     .communicator = communicator_,
                     .count = count * model_.hidden,
                     .datatype = datatype,
                     .peer = peer,
                     .group = count_,
                     .all_to_all = count_,
                     .loss_tolerance_ppm = loss_tolerance_ppm_});
  };
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    add(CollectiveKind::kSend, peer, tokens(place_, peer));
    add(CollectiveKind::kRecv, peer, tokens(peer, place_));
  }
  writer_.Group(calls);
}

}  // namespace railyard
