// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/stage_check.h"

#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

// Size, datatype and communicator (its number among those of the same ranks) of each Send.
using Sends = std::vector<std::tuple<uint64_t, Datatype, uint32_t>>;

bool IsFirstAndLast(const std::vector<GlobalRank>& ranks, const TraceDivision& division) {
  return ranks.size() == 2 && PlaceOf(division, ranks[0]).stage == 0 &&
         PlaceOf(division, ranks[1]).stage + 1 == division.pipeline;
}

class StageChecker {
 public:
  StageChecker(const Trace& trace, const ParallelGroups& groups, const std::string& file,
               Diagnostics& diagnostics)
      : trace_(trace), groups_(groups), file_(file), diagnostics_(diagnostics) {}

  bool Run() {
    forward_.resize(trace_.rank_count);
    backward_.resize(trace_.rank_count);
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (!CheckProgram(rank)) return false;
    }
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (!CheckSends(rank)) return false;
    }
    return true;
  }

 private:
  bool Error(const std::string& field, const char* what) {
    diagnostics_.Error({.file = file_}, field, what);
    return false;
  }

  bool CheckProgram(GlobalRank rank) {
    bool is_backward = false;  // a backward pass of this iteration has begun
    for (size_t i = 0; i < trace_.operations[rank].size(); ++i) {
      const TraceOperation& operation = trace_.operations[rank][i];
      if (operation.begins_iteration) is_backward = false;
      if (operation.kind == CollectiveKind::kCompute) continue;
      const char* const why = CheckCall(rank, operation, is_backward);
      if (why != nullptr) return Error(fmt::format("ranks[{}].operations[{}]", rank, i), why);
    }
    return true;
  }

  // Returns why the call depends on the number of stages; nullptr if it does not.
  const char* CheckCall(GlobalRank rank, const TraceOperation& operation, bool& is_backward) {
    const uint32_t communicator = trace_.CommunicatorOf(rank, operation.communicator);
    if (groups_.KindOf(communicator) != GroupKind::kStages) return nullptr;
    const std::vector<GlobalRank>& ranks = trace_.communicators[communicator].ranks;
    const bool is_of_all = ranks.size() == groups_.division().pipeline;
    if (!IsSendOrRecv(operation.kind)) {
      if (is_of_all || IsFirstAndLast(ranks, groups_.division())) return nullptr;
      return "is a collective of some stages, of which nothing says which of the new ones they "
             "would be (expected all stages, or the first and the last)";
    }
    const int32_t distance = groups_.StagesTo(rank, operation);
    if (std::abs(distance) != 1 || (!is_of_all && ranks.size() != 2)) {
      return "is a message to a stage that is no neighbor (expected the next or the previous)";
    }
    const bool is_send = operation.kind == CollectiveKind::kSend;
    const bool goes_forward = (distance > 0) == is_send;
    if (goes_forward && is_backward) {
      return "is of a forward pass after a backward pass: such a schedule depends on the number of "
             "stages (expected all forward passes of an iteration first)";
    }
    is_backward = is_backward || !goes_forward;
    if (is_send) {
      (goes_forward ? forward_ : backward_)[rank].emplace_back(operation.count, operation.datatype,
                                                               groups_.NumberOf(communicator));
    }
    return nullptr;
  }

  // Any stage may come to stand beside any other.
  bool CheckSends(GlobalRank rank) {
    const TraceDivision& division = groups_.division();
    Place place = PlaceOf(division, rank);
    const uint32_t stage = place.stage;
    place.stage = 0;
    const bool forward_differs =
        stage + 1 < division.pipeline && forward_[rank] != forward_[RankOf(division, place)];
    place.stage = division.pipeline - 1;
    const bool backward_differs =
        stage > 0 && backward_[rank] != backward_[RankOf(division, place)];
    if (!forward_differs && !backward_differs) return true;
    return Error(fmt::format("ranks[{}]", rank),
                 forward_differs ? "sends forward what the first stage does not (expected as many "
                                   "messages of the same sizes)"
                                 : "sends backward what the last stage does not (expected as many "
                                   "messages of the same sizes)");
  }

  const Trace& trace_;
  const ParallelGroups& groups_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::vector<Sends> forward_;  // by rank
  std::vector<Sends> backward_;
};

}  // namespace

bool CheckStages(const Trace& trace, const ParallelGroups& groups, const std::string& file,
                 Diagnostics& diagnostics) {
  return StageChecker(trace, groups, file, diagnostics).Run();
}

}  // namespace railyard
