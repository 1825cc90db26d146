// SPDX-License-Identifier: GPL-2.0-only
// Computes the tokens that the ranks of one expert-parallel group send to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plans/plan/plan.h"

namespace railyard {

// Describes the exchange of one layer's pass over one micro-batch or step. Ranks are places in the
// group; rank r holds the experts from r x count / ranks on. A token counts once for each of its
// experts.
struct ExpertExchange {
  uint32_t ranks = 0;
  std::vector<uint32_t> tokens;      // [from x ranks + to]
  std::vector<uint32_t> per_expert;  // that an expert gets
  uint64_t dropped = 0;
  // These are the tokens of a rank that have any expert on another rank, and on any rank of a
  // server of `server_ranks` consecutive ranks. Each token counts once. They are empty without an
  // expert kernel that sends tokens this way.
  uint32_t server_ranks = 0;
  std::vector<uint32_t> rank_tokens{};    // [from x ranks + to]
  std::vector<uint32_t> server_tokens{};  // [from x servers + server]

  uint32_t servers() const { return ranks / server_ranks; }
  uint32_t RankTokens(uint32_t from, uint32_t to) const {
    return rank_tokens[size_t{from} * ranks + to];
  }
  uint32_t ServerTokens(uint32_t from, uint32_t server) const {
    return server_tokens[size_t{from} * servers() + server];
  }
  uint32_t Tokens(uint32_t from, uint32_t to) const { return tokens[size_t{from} * ranks + to]; }
  uint64_t ReceivedBy(uint32_t to) const;
  // Returns the number of tokens that each rank would get from an even gate without a capacity.
  double MeanReceived() const;
  // Returns the number of that rank's experts that get a token.
  uint32_t ActiveOn(uint32_t to) const;
};

// Identifies a pass; the draws depend on it alone.
struct ExpertPass {
  uint32_t group = 0;  // number of the expert-parallel group
  uint32_t iteration = 0;
  uint32_t micro_batch = 0;  // or step, in inference
  uint32_t layer = 0;        // of the model
};

// Returns the exchange of a pass. `tokens_of` are the tokens of each rank of the group before
// routing. If the plan has a capacity factor f, a rank with t tokens sends an expert at most ceil(f
// t per_token / count) of them (Megatron-LM, get_capacity in
// megatron/core/transformer/moe/moe_utils.py). Precondition: the layer has experts, and their count
// is a multiple of the ranks.
ExpertExchange RouteTokens(const Plan& plan, const ExpertPass& pass,
                           const std::vector<uint64_t>& tokens_of);

// Returns the number of consecutive ranks of an expert-parallel group that a kernel treats as one
// server. Precondition: the plan's experts have a kernel.
uint32_t ServerRanksOf(const Plan& plan);

// Returns the largest number of tokens that an expert may get from a rank with `tokens`.
uint64_t ExpertCapacity(const Experts& experts, double capacity_factor, uint64_t tokens);

}  // namespace railyard
