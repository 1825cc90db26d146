// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/expert_gate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace railyard {
namespace {

// An order of 256 experts takes 3.3 us, that is 0.2 us a token.
constexpr uint32_t kTokensPerOrder = 16;

enum GateDraw : uint64_t { kPopularity, kConcentration };

void Normalize(std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
}

void Shuffle(std::vector<uint32_t>& numbers, RandomStream& random) {
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.Below(i)]);
}

// Gamma-distributed with scale 1 (Marsaglia and Tsang, ACM TOMS 26(3), 2000).
double Gamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double larger = Gamma(shape + 1, random);
    return larger * std::pow(1 - random.Unit(), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.Normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.Unit()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Limits shares to `limit` and raises the others in proportion; the sum is unchanged. Shares of 0
// are raised equally if the others cannot take the excess. Precondition: the sum is at most their
// number x limit.
void Cap(double* shares, size_t count, double limit) {
  const double sum = std::accumulate(shares, shares + count, 0.0);
  std::vector<bool> is_cut(count);
  while (true) {
    double cut_sum = 0;
    double rest = 0;
    size_t free_count = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!is_cut[i] && shares[i] >= limit) is_cut[i] = true;
      cut_sum += is_cut[i] ? limit : 0;
      rest += is_cut[i] ? 0 : shares[i];
      free_count += is_cut[i] ? 0 : 1;
    }
    const double left = sum - cut_sum;
    bool is_settled = true;
    for (size_t i = 0; i < count; ++i) {
      if (is_cut[i]) {
        shares[i] = limit;
      } else {
        shares[i] = rest > 0 ? shares[i] / rest * left : left / static_cast<double>(free_count);
        is_settled = is_settled && shares[i] <= limit;
      }
    }
    if (is_settled) return;
  }
}

// Limits shares to those a token can choose, group by group.
void CapShares(const Experts& experts, std::vector<double>& shares) {
  const size_t groups = experts.groups;
  const size_t group_size = experts.count / groups;
  std::vector<double> group_shares(groups);
  for (size_t i = 0; i < shares.size(); ++i) group_shares[i / group_size] += shares[i];
  std::vector<double> allowed = group_shares;
  Cap(allowed.data(), groups, 1.0 / experts.groups_per_token);
  const double per_group = static_cast<double>(experts.per_token) / experts.groups_per_token;
  for (size_t group = 0; group < groups; ++group) {
    double* const first = shares.data() + group * group_size;
    for (size_t i = 0; i < group_size; ++i) {
      first[i] = group_shares[group] > 0 ? first[i] / group_shares[group] * allowed[group]
                                         : allowed[group] / static_cast<double>(group_size);
    }
    Cap(first, group_size, allowed[group] / per_group);
  }
}

std::vector<double> DrawnShares(const Experts& experts, const ExpertRouting& routing,
                                uint32_t expert_layer) {
  std::vector<double> shares(experts.count, 1);
  if (routing.gate == GateKind::kZipf) {
    std::vector<uint32_t> ranks(experts.count);
    std::iota(ranks.begin(), ranks.end(), 1u);
    RandomStream random(routing.seed, {kPopularity, expert_layer});
    Shuffle(ranks, random);
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i] = std::pow(ranks[i], -routing.zipf_exponent);
    }
  } else if (routing.gate == GateKind::kDirichlet) {
    RandomStream random(routing.seed, {kConcentration, expert_layer});
    for (double& share : shares) {
      // A lower bound keeps the sum of shares above 0 if all would round to 0.
      share = std::max(Gamma(routing.dirichlet_concentration, random), 1e-300);
    }
  }
  return shares;
}

}  // namespace

std::vector<double> GateShares(const Experts& experts, const ExpertRouting& routing,
                               uint32_t expert_layer, uint32_t iteration) {
  std::vector<double> shares;
  if (routing.gate == GateKind::kCaptured) {
    const auto& captured = routing.captured;
    shares = captured[captured.size() == 1 ? 0 : iteration][expert_layer];
  } else {
    shares = DrawnShares(experts, routing, expert_layer);
  }
  Normalize(shares);
  if (routing.drift_iterations > 0) {
    const double uniform = std::min(1.0, static_cast<double>(iteration) / routing.drift_iterations);
    for (double& share : shares) share = (1 - uniform) * share + uniform / experts.count;
  }
  CapShares(experts, shares);
  return shares;
}

ExpertChooser::ExpertChooser(const Experts& experts, std::vector<double> shares, RandomStream order)
    : experts_of_model_(experts), shares_(std::move(shares)), order_(order) {
  MakeUrns();
}

void ExpertChooser::MakeUrns() {
  const Experts& experts = experts_of_model_;
  urns_.clear();
  const uint32_t group_size = experts.count / experts.groups;
  std::vector<double> group_shares(experts.groups);
  for (uint32_t group = 0; group < experts.groups; ++group) {
    std::vector<uint32_t> members(group_size);
    std::iota(members.begin(), members.end(), group * group_size);
    for (const uint32_t member : members) group_shares[group] += shares_[member];
    urns_.push_back(
        MakeUrn(std::move(members), shares_, experts.per_token / experts.groups_per_token, order_));
  }
  std::vector<uint32_t> groups(experts.groups);
  std::iota(groups.begin(), groups.end(), 0u);
  groups_ = MakeUrn(std::move(groups), group_shares, experts.groups_per_token, order_);
}

void ExpertChooser::Choose(RandomStream& random, std::vector<uint32_t>& chosen) {
  chosen.clear();
  if (experts_of_model_.kernel != ExpertKernel::kNone && tokens_of_order_++ == kTokensPerOrder) {
    tokens_of_order_ = 1;
    MakeUrns();
  }
  if (urns_.size() == 1) {
    Draw(urns_.front(), random.Unit(), chosen);
    return;
  }
  drawn_groups_.clear();
  Draw(groups_, random.Unit(), drawn_groups_);
  for (const uint32_t group : drawn_groups_) Draw(urns_[group], random.Unit(), chosen);
}

ExpertChooser::Urn ExpertChooser::MakeUrn(std::vector<uint32_t> numbers,
                                          const std::vector<double>& weight_of, uint32_t take,
                                          RandomStream& order) {
  Shuffle(numbers, order);
  Urn urn{.numbers = std::move(numbers), .sums = {}, .take = take};
  double sum = 0;
  for (const uint32_t number : urn.numbers) urn.sums.push_back(sum += weight_of[number]);
  // An urn that is never drawn from has no sum.
  for (double& partial : urn.sums) partial *= sum > 0 ? take / sum : 0;
  return urn;
}

// Draws the numbers whose intervals on the line contain start, start + 1, …; no interval is longer
// than 1.
void ExpertChooser::Draw(const Urn& urn, double start, std::vector<uint32_t>& drawn) {
  auto at = urn.sums.begin();
  for (uint32_t i = 0; i < urn.take; ++i) {
    at = std::upper_bound(at, urn.sums.end(), start + i);
    // Sums of rounded numbers may end a little before `take`, or pass two points at once.
    const auto left = static_cast<std::ptrdiff_t>(urn.take - i);
    if (urn.sums.end() - at < left) at = urn.sums.end() - left;
    drawn.push_back(urn.numbers[static_cast<size_t>(at - urn.sums.begin())]);
    ++at;
  }
}

}  // namespace railyard
