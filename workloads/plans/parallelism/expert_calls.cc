// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/expert_calls.h"

#include <algorithm>
#include <optional>

#include "workloads/collectives/hierarchical_exchange.h"
#include "workloads/experts/expert_kernels.h"

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
  if (model_.experts->kernel != ExpertKernel::kNone) return;
  writer_.Collective({.kind = CollectiveKind::kAllGather,
                      .communicator = communicator_,
                      .count = model_.experts->count,
                      .datatype = Datatype::kInt64});
}

void ExpertCalls::Dispatch(const ExpertExchange& exchange) { AllToAllV(exchange, true); }

void ExpertCalls::Combine(const ExpertExchange& exchange) { AllToAllV(exchange, false); }

// Hops are described as those of a dispatch. A combine goes the same ways back.
class ExpertCalls::Hops {
 public:
  Hops(TraceOperation common) : common_(common) {}

  // `owner` is the rank whose tokens the hop carries within a server.
  void Add(bool is_send, uint32_t peer, uint64_t tokens, std::optional<uint32_t> owner = {}) {
    if (tokens == 0) return;
    calls_.push_back(common_);
    TraceOperation& call = calls_.back();
    call.kind = is_send != call.expert.combines ? CollectiveKind::kSend : CollectiveKind::kRecv;
    call.peer = peer;
    call.count = tokens * call.expert.token_bytes;
    call.expert.relayed_for = owner ? *owner + 1 : 0;
  }
  const std::vector<TraceOperation>& calls() const { return calls_; }

 private:
  TraceOperation common_;
  std::vector<TraceOperation> calls_;
};

ExpertCall ExpertCalls::KernelCall(const ExpertExchange& exchange, bool is_dispatch) const {
  const Experts& experts = *model_.experts;
  const uint32_t sms = experts.kernel_sms;
  uint32_t channels = 0;
  switch (experts.kernel) {
    case ExpertKernel::kDeepEp:
      channels = (sms > 0 ? sms : kDeepEpSms) / 2;
      break;
    case ExpertKernel::kHybridEp:
      channels = sms > 0 ? sms : kHybridEpSms;
      break;
    default:
      channels = std::min<uint32_t>(UINT8_MAX, experts.count / exchange.ranks);
  }
  const TokenShape token{.hidden = model_.hidden,
                         .element_bytes = DatatypeBytes(is_dispatch ? dispatch_ : combine_),
                         .per_token = experts.per_token,
                         .server_experts = experts.count / exchange.ranks * exchange.server_ranks};
  return {.token_bytes = TokenBytes(experts.kernel, !is_dispatch, token),
          .kernel = experts.kernel,
          .combines = !is_dispatch,
          .channels = static_cast<uint8_t>(channels),
          .server_ranks = static_cast<uint8_t>(exchange.server_ranks)};
}

void ExpertCalls::KernelExchange(const ExpertExchange& exchange, bool is_dispatch) {
  ++count_;
  Hops hops({.communicator = communicator_,
             .datatype = Datatype::kUint8,
             .group = count_,
             .all_to_all = count_,
             .expert = KernelCall(exchange, is_dispatch)});
  if (model_.experts->kernel == ExpertKernel::kDeepEpLowLatency) {
    for (uint32_t peer = 0; peer < exchange.ranks; ++peer) {
      hops.Add(true, peer, exchange.Tokens(place_, peer));
      hops.Add(false, peer, exchange.Tokens(peer, place_));
    }
  } else {
    AddRelayed(exchange, hops);
  }
  writer_.Group(hops.calls());
}

void ExpertCalls::AddRelayed(const ExpertExchange& exchange, Hops& hops) const {
  const uint32_t server_ranks = exchange.server_ranks;
  const uint32_t server = place_ / server_ranks;
  const uint32_t rail = place_ % server_ranks;
  for (uint32_t other = 0; other < exchange.servers(); ++other) {
    if (other == server) continue;
    const uint32_t peer = other * server_ranks + rail;
    hops.Add(true, peer, exchange.ServerTokens(place_, other));
    hops.Add(false, peer, exchange.ServerTokens(peer, server));
  }
  for (uint32_t i = 0; i < server_ranks; ++i) {
    const uint32_t local = server * server_ranks + i;
    for (uint32_t from = 0; from < exchange.servers(); ++from) {
      const uint32_t own_rail = from * server_ranks + rail;
      const uint32_t other_rail = from * server_ranks + i;
      hops.Add(true, local, exchange.RankTokens(own_rail, local), own_rail);
      hops.Add(false, local, exchange.RankTokens(other_rail, place_), other_rail);
    }
  }
}

void ExpertCalls::AllToAllV(const ExpertExchange& exchange, bool is_dispatch) {
  if (model_.experts->kernel != ExpertKernel::kNone) {
    KernelExchange(exchange, is_dispatch);
    return;
  }
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
