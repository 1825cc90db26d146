// SPDX-License-Identifier: GPL-2.0-only
// Compares two results, paired by collective: the same collective of the same workload, on another
// fabric, with other settings or under other faults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/stored_result.h"

namespace railyard {

// Says how the durations of the second result compare with those of the first.
enum class Verdict : uint8_t {
  kEqual,         // both durations of every pair are equal to the picosecond
  kNothing,       // there are no pairs
  kNoDifference,  // the confidence interval of the difference contains 0
  kFaster,        // the second result's total is lower, and the interval is below 0
  kSlower,        // the second result's total is higher, and the interval is above 0
};
std::string_view VerdictText(Verdict verdict);  // "slower"

// Compares the paired durations of one kind of collective, or of all kinds together.
struct KindComparison {
  std::string kind;  // "AllReduce"; "all"
  uint64_t pairs = 0;
  uint64_t equal = 0;   // pairs with the same duration to the picosecond
  uint64_t slower = 0;  // pairs in which the second result's collective takes longer
  int64_t first_total_ps = 0;
  int64_t second_total_ps = 0;
  double median_ratio = 1;  // second over first, by nearest rank
  double largest_ratio = 1;
  // The second result's total over the first result's, minus 1, with a 95 % confidence interval.
  // The interval is absent with fewer than 8 pairs, which are too few to resample.
  double difference = 0;
  std::optional<double> low;
  std::optional<double> high;
  Verdict verdict = Verdict::kNothing;
};

struct Comparison {
  StoredResult first;
  StoredResult second;
  std::vector<KindComparison> kinds;  // "all" first, then by first appearance
  uint64_t first_alone = 0;           // collectives of the first result without a partner
  uint64_t second_alone = 0;

  // Returns whether every collective has a partner, and the runs ended alike.
  bool IsWhole() const;
  // Returns true if the difference of all pairs, or that of a kind, is significant and larger than
  // `threshold` (a share, 0.01 for 1 %), if the runs ended with different statuses, or if one of
  // them has collectives without a partner.
  bool Exceeds(double threshold) const;
};

// Describes a collective of both results; the pointers point into them.
struct PairedCollective {
  const StoredCollective* first = nullptr;  // both have a duration
  const StoredCollective* second = nullptr;
};
struct Pairing {
  std::vector<PairedCollective> pairs;
  uint64_t first_alone = 0;  // collectives without a partner
  uint64_t second_alone = 0;
};

// Pairs the k-th collectives of both results if kind, number of ranks and bytes agree and both
// ended.
Pairing PairCollectives(const StoredResult& first, const StoredResult& second);

// Compares the durations of paired collectives. The interval is a percentile bootstrap of 1,000
// resamples over at most 2,000 blocks of consecutive pairs (Künsch, "The jackknife and the
// bootstrap for general stationary observations", Annals of Statistics 17, 1989), because
// neighbours in time share the state of the network. The draws are keyed, so equal results give
// equal intervals.
Comparison Compare(StoredResult first, StoredResult second);

}  // namespace railyard
