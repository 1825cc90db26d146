// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "analysis/metrics/bootstrap.h"
#include "analysis/metrics/statistics.h"

namespace railyard {
namespace {

struct DurationPair {
  int64_t first_ps = 0;
  int64_t second_ps = 0;
};

constexpr size_t kBlocksMax = 2'000;

double RatioOf(const DurationPair& pair) {
  if (pair.first_ps == pair.second_ps) return 1;
  if (pair.first_ps == 0) return std::numeric_limits<double>::max();
  return static_cast<double>(pair.second_ps) / static_cast<double>(pair.first_ps);
}

double DifferenceOf(double first_total, double second_total) {
  return first_total == 0 ? 0 : second_total / first_total - 1;
}

// The totals of consecutive pairs, as even as they come.
std::vector<DurationPair> BlocksOf(const std::vector<DurationPair>& pairs) {
  const size_t count = std::min(pairs.size(), kBlocksMax);
  std::vector<DurationPair> blocks(count);
  for (size_t i = 0; i < pairs.size(); ++i) {
    DurationPair& block = blocks[i * count / pairs.size()];
    block.first_ps += pairs[i].first_ps;
    block.second_ps += pairs[i].second_ps;
  }
  return blocks;
}

void AddInterval(const std::vector<DurationPair>& pairs, KindComparison& comparison) {
  const std::vector<DurationPair> blocks = BlocksOf(pairs);
  const auto interval = BootstrapInterval(blocks.size(), [&](std::span<const size_t> picks) {
    double first = 0;
    double second = 0;
    for (const size_t pick : picks) {
      first += static_cast<double>(blocks[pick].first_ps);
      second += static_cast<double>(blocks[pick].second_ps);
    }
    return DifferenceOf(first, second);
  });
  if (!interval) return;
  comparison.low = interval->low;
  comparison.high = interval->high;
}

Verdict VerdictOf(const KindComparison& comparison) {
  if (comparison.equal == comparison.pairs) return Verdict::kEqual;
  const bool is_slower = comparison.difference > 0;
  // Without an interval every difference of two exact simulations is one.
  if (comparison.low && *comparison.low <= 0 && *comparison.high >= 0) {
    return Verdict::kNoDifference;
  }
  if (comparison.difference == 0) return Verdict::kNoDifference;
  return is_slower ? Verdict::kSlower : Verdict::kFaster;
}

KindComparison CompareKind(std::string kind, const std::vector<DurationPair>& pairs) {
  KindComparison comparison;
  comparison.kind = std::move(kind);
  comparison.pairs = pairs.size();
  std::vector<double> ratios;
  ratios.reserve(pairs.size());
  double first_total = 0;
  double second_total = 0;
  for (const DurationPair& pair : pairs) {
    comparison.equal += pair.first_ps == pair.second_ps ? 1u : 0u;
    comparison.slower += pair.second_ps > pair.first_ps ? 1u : 0u;
    comparison.first_total_ps += pair.first_ps;
    comparison.second_total_ps += pair.second_ps;
    first_total += static_cast<double>(pair.first_ps);
    second_total += static_cast<double>(pair.second_ps);
    ratios.push_back(RatioOf(pair));
  }
  if (pairs.empty()) return comparison;
  std::sort(ratios.begin(), ratios.end());
  comparison.median_ratio = ratios[NearestRankIndex(ratios.size(), 500)];
  comparison.largest_ratio = ratios.back();
  comparison.difference = DifferenceOf(first_total, second_total);
  AddInterval(pairs, comparison);
  comparison.verdict = VerdictOf(comparison);
  return comparison;
}

bool ArePartners(const StoredCollective& first, const StoredCollective& second) {
  return first.kind == second.kind && first.ranks == second.ranks && first.bytes == second.bytes &&
         first.duration_ps && second.duration_ps;
}

bool IsSignificant(const KindComparison& comparison) {
  return comparison.verdict == Verdict::kFaster || comparison.verdict == Verdict::kSlower;
}

}  // namespace

std::string_view VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kNothing:
      return "nothing to compare";
    case Verdict::kNoDifference:
      return "no difference";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
  }
  return "";
}

bool Comparison::IsWhole() const {
  return first.status == second.status && first_alone == 0 && second_alone == 0;
}

bool Comparison::Exceeds(double threshold) const {
  if (!IsWhole()) return true;
  return std::any_of(kinds.begin(), kinds.end(), [&](const KindComparison& kind) {
    return IsSignificant(kind) && std::abs(kind.difference) > threshold;
  });
}

Pairing PairCollectives(const StoredResult& first, const StoredResult& second) {
  Pairing pairing;
  auto other = second.collectives.begin();
  for (const StoredCollective& collective : first.collectives) {
    while (other != second.collectives.end() && other->index < collective.index) {
      ++pairing.second_alone;
      ++other;
    }
    const bool is_there = other != second.collectives.end() && other->index == collective.index;
    if (is_there && ArePartners(collective, *other)) {
      pairing.pairs.push_back({&collective, &*other});
    } else {
      ++pairing.first_alone;
      if (is_there) ++pairing.second_alone;
    }
    if (is_there) ++other;
  }
  pairing.second_alone += static_cast<uint64_t>(second.collectives.end() - other);
  return pairing;
}

Comparison Compare(StoredResult first, StoredResult second) {
  Comparison comparison;
  const Pairing pairing = PairCollectives(first, second);
  comparison.first_alone = pairing.first_alone;
  comparison.second_alone = pairing.second_alone;
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<DurationPair>> pairs_of_kind;
  std::vector<DurationPair> all;
  for (const PairedCollective& paired : pairing.pairs) {
    const DurationPair pair = {*paired.first->duration_ps, *paired.second->duration_ps};
    auto [found, is_new] = pairs_of_kind.try_emplace(paired.first->kind);
    if (is_new) kinds.push_back(paired.first->kind);
    found->second.push_back(pair);
    all.push_back(pair);
  }
  comparison.kinds.push_back(CompareKind("all", all));
  for (const std::string& kind : kinds) {
    comparison.kinds.push_back(CompareKind(kind, pairs_of_kind[kind]));
  }
  comparison.first = std::move(first);
  comparison.second = std::move(second);
  return comparison;
}

}  // namespace railyard
