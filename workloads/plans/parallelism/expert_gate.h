// SPDX-License-Identifier: GPL-2.0-only
// Models a gate: how often it chooses each expert, and which experts it chooses for each token.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plans/model/model_config.h"
#include "workloads/plans/parallelism/expert_routing.h"
#include "workloads/plans/parallelism/random_stream.h"

namespace railyard {

// Returns each expert's share of all choices in a layer, which is counted from the first layer with
// experts; shares sum to 1. The order of popularity is drawn for each layer.
//   Uniform: 1 / count. Zipf: the r-th most popular has r^-exponent of the first's.
//   Dirichlet: drawn with equal concentrations; the lower they are, the more uneven.
// A token takes an expert once, and per_token / groups_per_token experts of a group: shares above
// the resulting limits are cut to them and the rest goes to the others in proportion.
std::vector<double> GateShares(const Experts& experts, const ExpertRouting& routing,
                               uint32_t expert_layer, uint32_t iteration);

// Chooses per_token experts for one token, so that expert e is among them with probability
// per_token x shares[e] exactly: systematic sampling (Madow, 1949), first of groups, then of the
// experts in each, where the model limits groups.
class ExpertChooser {
 public:
  // `shares` are those of GateShares. `order` draws which experts are adjacent in sampling.
  ExpertChooser(const Experts& experts, const std::vector<double>& shares, RandomStream order);
  // Writes the experts to `chosen`, which is emptied first.
  void Choose(RandomStream& random, std::vector<uint32_t>& chosen);

 private:
  // Numbers of which `take` are chosen at once.
  struct Urn {
    std::vector<uint32_t> numbers;
    std::vector<double> sums;  // of their probabilities, up to and with each
    uint32_t take = 0;
  };
  static Urn MakeUrn(std::vector<uint32_t> numbers, const std::vector<double>& weight_of,
                     uint32_t take, RandomStream& order);
  static void Draw(const Urn& urn, double start, std::vector<uint32_t>& drawn);

  Urn groups_;
  std::vector<Urn> experts_;            // by group
  std::vector<uint32_t> drawn_groups_;  // of a token
};

}  // namespace railyard
