// SPDX-License-Identifier: GPL-2.0-only
// Classifies the communicators of a trace as groups of a parallel job whose division the user
// states.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "traces/transform/trace_retarget.h"

namespace railyard {

// Describes the place of a rank in a division.
struct Place {
  uint32_t tensor = 0;
  uint32_t data = 0;
  uint32_t stage = 0;
};
Place PlaceOf(const TraceDivision& division, GlobalRank rank);
GlobalRank RankOf(const TraceDivision& division, const Place& place);

enum class GroupKind : uint8_t {
  kTensor,
  kData,
  kExpert,      // adjacent data parallel ranks that share the experts
  kExpertData,  // data parallel ranks that have the same experts
  kStages,      // all or some stages at one place
  kAll,
  kOther
};

// Returns the ranks of the group of `place`; for kStages, those of all stages. Precondition: `kind`
// is not kOther.
std::vector<GlobalRank> GroupRanks(GroupKind kind, const TraceDivision& division,
                                   const Place& place);

class ParallelGroups {
 public:
  // Both must outlive this. Precondition: the trace has as many ranks as the division, and `expert`
  // divides `data` if it is not 0.
  ParallelGroups(const Trace& trace, const TraceDivision& division);

  const TraceDivision& division() const { return division_; }
  GroupKind KindOf(uint32_t communicator) const { return kinds_[communicator]; }
  // Returns the number of earlier communicators with the same ranks.
  uint32_t NumberOf(uint32_t communicator) const { return numbers_[communicator]; }
  // Returns true if two ranks make equal calls, each on its own groups.
  bool AreAlike(GlobalRank a, GlobalRank b) const;
  // Returns the number of stages from that of `rank` to that of the message's peer.
  int32_t StagesTo(GlobalRank rank, const TraceOperation& message) const;

 private:
  GroupKind Classify(uint32_t communicator, bool exchanges_only) const;
  bool AreAlike(GlobalRank a, const TraceOperation& x, GlobalRank b, const TraceOperation& y) const;

  const Trace& trace_;
  const TraceDivision& division_;
  std::vector<GroupKind> kinds_;  // by communicator
  std::vector<uint32_t> numbers_;
};

}  // namespace railyard
