// SPDX-License-Identifier: GPL-2.0-only
// Models a gate: how often it chooses each expert, and which experts it chooses for each token.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plans/model/model_config.h"
#include "workloads/plans/parallelism/random_stream.h"
#include "workloads/plans/plan/expert_routing.h"

namespace railyard {

// Returns each expert's share of all choices in a layer, which is counted from the first layer with
// experts; shares sum to 1. The order of popularity is drawn for each layer.
//   Uniform: 1 / count. Zipf: the r-th most popular expert has r^-exponent times the share of the
//   first. Dirichlet: shares are drawn with equal concentrations; the lower these are, the more
//   uneven the shares.
// A token chooses an expert at most once, and per_token / groups_per_token experts of a group.
// Shares above the resulting limits are reduced to them, and the excess is distributed over the
// others in proportion.
std::vector<double> GateShares(const Experts& experts, const ExpertRouting& routing,
                               uint32_t expert_layer, uint32_t iteration);

// Chooses per_token experts for one token, so that expert e is among them with a probability of
// exactly per_token x shares[e], by systematic sampling (Madow, 1949); if the model limits groups,
// it samples groups first, then the experts in each.
class ExpertChooser {
 public:
  // `experts` must outlive this; `shares` are those of GateShares. `order` draws which experts are
  // adjacent in sampling: once, or for every few tokens where it matters which experts a token has
  // together, as for a kernel that sends it once to a server.
  ExpertChooser(const Experts& experts, std::vector<double> shares, RandomStream order);
  // Replaces the contents of `chosen` by the experts.
  void Choose(RandomStream& random, std::vector<uint32_t>& chosen);

 private:
  // Holds numbers of which `take` are chosen at once.
  struct Urn {
    std::vector<uint32_t> numbers;
    std::vector<double> sums;  // cumulative sums of their probabilities
    uint32_t take = 0;
  };
  static Urn MakeUrn(std::vector<uint32_t> numbers, const std::vector<double>& weight_of,
                     uint32_t take, RandomStream& order);
  static void Draw(const Urn& urn, double start, std::vector<uint32_t>& drawn);

  void MakeUrns();

  const Experts& experts_of_model_;
  std::vector<double> shares_;
  RandomStream order_;
  uint32_t tokens_of_order_ = 0;  // that have been drawn with the current order
  Urn groups_;
  std::vector<Urn> urns_;               // by group
  std::vector<uint32_t> drawn_groups_;  // of a token
};

}  // namespace railyard
