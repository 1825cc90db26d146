// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/expert_traffic.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "workloads/experts/expert_kernels.h"
#include "workloads/plans/parallelism/expert_gate.h"

namespace railyard {
namespace {

enum TrafficDraw : uint64_t { kOrder = 16, kTokens };

// Counts each token once for each rank and each server that has any of its experts.
class CopyCounter {
 public:
  CopyCounter(const Plan& plan, uint32_t experts_of_rank, ExpertExchange& exchange)
      : experts_of_rank_(experts_of_rank), exchange_(exchange) {
    exchange.server_ranks = ServerRanksOf(plan);
    exchange.rank_tokens.assign(size_t{exchange.ranks} * exchange.ranks, 0);
    exchange.server_tokens.assign(size_t{exchange.ranks} * exchange.servers(), 0);
  }

  void Count(uint32_t from, const std::vector<uint32_t>& chosen) {
    ranks_.clear();
    for (const uint32_t expert : chosen) ranks_.push_back(expert / experts_of_rank_);
    std::ranges::sort(ranks_);
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    uint32_t counted = UINT32_MAX;  // server
    for (const uint32_t rank : ranks_) {
      ++exchange_.rank_tokens[size_t{from} * exchange_.ranks + rank];
      const uint32_t server = rank / exchange_.server_ranks;
      if (server == counted) continue;
      counted = server;
      ++exchange_.server_tokens[size_t{from} * exchange_.servers() + server];
    }
  }

 private:
  uint32_t experts_of_rank_;
  ExpertExchange& exchange_;
  std::vector<uint32_t> ranks_;  // of the token at hand
};

}  // namespace

uint64_t ExpertExchange::ReceivedBy(uint32_t to) const {
  uint64_t received = 0;
  for (uint32_t from = 0; from < ranks; ++from) received += Tokens(from, to);
  return received;
}

double ExpertExchange::MeanReceived() const {
  uint64_t sent = dropped;
  for (const uint32_t tokens_of_expert : per_expert) sent += tokens_of_expert;
  return static_cast<double>(sent) / ranks;
}

uint32_t ExpertExchange::ActiveOn(uint32_t to) const {
  const auto experts_of_rank = static_cast<std::ptrdiff_t>(per_expert.size() / ranks);
  const auto first = per_expert.begin() + experts_of_rank * to;
  return static_cast<uint32_t>(experts_of_rank - std::count(first, first + experts_of_rank, 0u));
}

uint64_t ExpertCapacity(const Experts& experts, double capacity_factor, uint64_t tokens) {
  const double mean = static_cast<double>(tokens) * experts.per_token / experts.count;
  return static_cast<uint64_t>(std::ceil(mean * capacity_factor));
}

uint32_t ServerRanksOf(const Plan& plan) {
  const uint32_t stated = plan.model.experts->nvlink_ranks;
  return std::min(stated > 0 ? stated : kDeepEpServerRanks, plan.parallelism.expert);
}

ExpertExchange RouteTokens(const Plan& plan, const ExpertPass& pass,
                           const std::vector<uint64_t>& tokens_of) {
  const Experts& experts = *plan.model.experts;
  const ExpertRouting& routing = plan.routing;
  const uint32_t expert_layer = pass.layer - experts.dense_layers;
  const auto ranks = static_cast<uint32_t>(tokens_of.size());
  const uint32_t experts_of_rank = experts.count / ranks;
  ExpertChooser chooser(experts, GateShares(experts, routing, expert_layer, pass.iteration),
                        RandomStream(routing.seed, {kOrder, pass.iteration, expert_layer}));
  ExpertExchange exchange{.ranks = ranks,
                          .tokens = std::vector<uint32_t>(size_t{ranks} * ranks),
                          .per_expert = std::vector<uint32_t>(experts.count)};
  std::optional<CopyCounter> copies;
  if (experts.kernel != ExpertKernel::kNone) copies.emplace(plan, experts_of_rank, exchange);
  std::vector<uint32_t> chosen;
  std::vector<uint32_t> counts;
  for (uint32_t from = 0; from < ranks; ++from) {
    RandomStream random(
        routing.seed, {kTokens, pass.group, pass.iteration, pass.micro_batch, expert_layer, from});
    counts.assign(experts.count, 0);
    for (uint64_t token = 0; token < tokens_of[from]; ++token) {
      if (token == 0 || routing.correlation == 0 || random.Unit() >= routing.correlation) {
        chooser.Choose(random, chosen);
      }
      for (const uint32_t expert : chosen) ++counts[expert];
      if (copies) copies->Count(from, chosen);
    }
    const uint64_t capacity =
        routing.capacity_factor > 0
            ? ExpertCapacity(experts, routing.capacity_factor, tokens_of[from])
            : tokens_of[from];
    for (uint32_t expert = 0; expert < experts.count; ++expert) {
      if (counts[expert] > capacity) {
        exchange.dropped += counts[expert] - capacity;
        counts[expert] = static_cast<uint32_t>(capacity);
      }
      exchange.tokens[size_t{from} * ranks + expert / experts_of_rank] += counts[expert];
      exchange.per_expert[expert] += counts[expert];
    }
  }
  return exchange;
}

}  // namespace railyard
