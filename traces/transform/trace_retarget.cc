// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_retarget.h"

#include <compare>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "traces/trace/collective_blocks.h"
#include "traces/trace/trace_check.h"
#include "traces/transform/parallel_groups.h"
#include "traces/transform/resized_call.h"
#include "traces/transform/stage_check.h"

namespace railyard {
namespace {

class TraceRetargeter {
 public:
  TraceRetargeter(const Trace& trace, const TraceDivision& from, const TraceDivision& to,
                  const std::string& file, Diagnostics& diagnostics)
      : trace_(trace),
        from_(from),
        to_(to),
        file_(file),
        diagnostics_(diagnostics),
        groups_(trace, from) {}

  std::optional<Trace> Run() {
    if (!CheckDivisions() || !CheckGroups() || !CheckAlike()) return std::nullopt;
    if (StagesChange() && !CheckStages(trace_, groups_, file_, diagnostics_)) return std::nullopt;
    result_.origin = trace_.origin;
    result_.nccl_version = trace_.nccl_version;
    result_.source_files = trace_.source_files;
    result_.rank_count = static_cast<uint32_t>(to_.ranks());
    result_.operations.resize(result_.rank_count);
    for (GlobalRank rank{0}; rank < result_.rank_count; ++rank) {
      if (!AddRank(rank)) return std::nullopt;
    }
    if (!CheckTrace(result_, file_, diagnostics_)) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool Error(const std::string& field, const std::string& what) {
    diagnostics_.Error({.file = file_}, field, what);
    return false;
  }

  bool StagesChange() const { return from_.pipeline != to_.pipeline; }
  bool ExpertsChange() const { return from_.expert != to_.expert; }

  bool CheckDivisions() {
    if (from_.ranks() != trace_.rank_count) {
      return Error("",
                   fmt::format("{} ranks are not {} tensor x {} data x {} pipeline parallel ones "
                               "(expected a product of {})",
                               trace_.rank_count, from_.tensor, from_.data, from_.pipeline,
                               trace_.rank_count));
    }
    if (to_.ranks() == 0 || to_.ranks() > kTraceRanksMax) {
      return Error("", fmt::format("{} ranks are out of range (expected 1 to {})", to_.ranks(),
                                   kTraceRanksMax));
    }
    for (const TraceDivision* division : {&from_, &to_}) {
      if (division->expert > 0 && division->data % division->expert == 0) continue;
      return Error("expert",
                   fmt::format("{} expert parallel ranks do not divide {} data parallel ones "
                               "(expected a divisor)",
                               division->expert, division->data));
    }
    if (StagesChange() && (from_.pipeline < 3 || to_.pipeline < 2)) {
      return Error("pipeline",
                   fmt::format("{} stages cannot become {}: no inner stage says what another one "
                               "would do (expected at least 3 stages, and at least 2 of the new "
                               "trace)",
                               from_.pipeline, to_.pipeline));
    }
    return true;
  }

  bool CheckGroups() {
    for (uint32_t i = 0; i < trace_.communicators.size(); ++i) {
      const TraceCommunicator& communicator = trace_.communicators[i];
      const GroupKind kind = groups_.KindOf(i);
      if (kind == GroupKind::kOther) {
        return Error(fmt::format("communicators[{}]", i),
                     fmt::format("{} of {} ranks is no group of tensor, data or expert parallel "
                                 "ranks or stages, so that no rule says what becomes of it "
                                 "(expected those of {} tensor x {} data x {} pipeline parallel "
                                 "ranks, {} expert parallel)",
                                 Quote(communicator.name), communicator.ranks.size(), from_.tensor,
                                 from_.data, from_.pipeline, from_.expert));
      }
      if (kind == GroupKind::kExpert && from_.tensor != to_.tensor) {
        return Error(fmt::format("communicators[{}]", i),
                     fmt::format("{} is of expert parallel ranks, whose tokens tensor parallel "
                                 "ranks divide or do not (expected {} tensor parallel ranks)",
                                 Quote(communicator.name), from_.tensor));
      }
    }
    return true;
  }

  // Ranks that differ in a degree that changes make the same calls.
  bool CheckAlike() {
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      Place place = PlaceOf(from_, rank);
      if (from_.data != to_.data || ExpertsChange()) {
        place.data = ExpertsChange() ? 0 : place.data % from_.expert;
      }
      if (from_.tensor != to_.tensor) place.tensor = 0;
      if (StagesChange() && place.stage > 0 && place.stage + 1 < from_.pipeline) place.stage = 1;
      const GlobalRank like = RankOf(from_, place);
      if (like == rank || groups_.AreAlike(like, rank)) continue;
      return Error(fmt::format("ranks[{}]", rank),
                   fmt::format("its calls differ from those of rank {}, so that the program of a "
                               "new rank is not known (expected equal ones)",
                               like));
    }
    return true;
  }

  // The place whose program the rank at `place` of the new trace runs.
  Place SourceOf(const Place& place) const {
    const uint32_t experts = from_.expert;
    const uint32_t expert = place.data % to_.expert % experts;
    const uint32_t replica = place.data / to_.expert % (from_.data / experts);
    Place source{.tensor = place.tensor % from_.tensor,
                 .data = expert + experts * replica,
                 .stage = place.stage};
    if (StagesChange() && place.stage > 0) {
      source.stage = place.stage + 1 == to_.pipeline ? from_.pipeline - 1 : 1;
    }
    return source;
  }

  bool AddRank(GlobalRank rank) {
    const Place place = PlaceOf(to_, rank);
    const GlobalRank source = RankOf(from_, SourceOf(place));
    std::vector<TraceOperation> operations = trace_.operations[source];
    for (size_t i = 0; i < operations.size(); ++i) {
      TraceOperation& operation = operations[i];
      operation.measured_ps = 0;  // of another size or number of ranks
      if (operation.kind == CollectiveKind::kCompute) continue;
      const uint32_t old = trace_.CommunicatorOf(source, operation.communicator);
      const GroupKind kind = groups_.KindOf(old);
      const bool is_message = IsSendOrRecv(operation.kind);
      const bool keeps_peers =
          kind == GroupKind::kStages || (kind == GroupKind::kExpert && !ExpertsChange());
      if (is_message && !keeps_peers) {
        return Error(fmt::format("ranks[{}].operations[{}]", source, i),
                     "is a message whose peers would be others (expected messages between stages, "
                     "or between as many expert parallel ranks as before)");
      }
      if (is_message && kind == GroupKind::kStages && StagesChange()) {
        const int32_t distance = groups_.StagesTo(source, operation);
        const auto neighbor = static_cast<uint32_t>(static_cast<int32_t>(place.stage) + distance);
        if (trace_.communicators[old].ranks.size() == from_.pipeline) operation.peer = neighbor;
        operation.communicator = NeighborCommunicator(old, place, neighbor, distance);
        continue;
      }
      const uint64_t old_size = trace_.communicators[old].ranks.size();
      std::vector<GlobalRank> ranks = RanksOf(kind, old, place);
      if (!is_message && old_size > 1 && ranks.size() == 1) {
        operation = AsComputation(operation);
        continue;
      }
      if (!is_message) {
        const uint64_t old_count = operation.count;
        Resize(kind, old_size, ranks.size(), operation);
        if (ranks.size() != old_size || operation.count != old_count) ForgetChoice(operation);
      }
      operation.communicator = Communicator({kind, false}, old, std::move(ranks));
    }
    result_.operations[rank] = std::move(operations);
    return true;
  }

  void Resize(GroupKind kind, uint64_t old_size, uint64_t size, TraceOperation& operation) const {
    // 128 bits: counts are any that a trace may have.
    unsigned __int128 count = operation.count;
    uint64_t divisor = 1;
    const bool is_of_tokens = kind == GroupKind::kExpert;
    if (is_of_tokens ? operation.kind == CollectiveKind::kAllToAll
                     : IsMadeOfBlocks(operation.kind)) {
      count *= old_size;
      divisor *= size;
    }
    // Stages share weights, too: those of a tied embedding.
    if (kind == GroupKind::kData || kind == GroupKind::kExpertData || kind == GroupKind::kAll ||
        kind == GroupKind::kStages) {
      count *= from_.tensor;
      divisor *= to_.tensor;
    }
    if (kind == GroupKind::kExpertData) {
      count *= from_.expert;
      divisor *= to_.expert;
    }
    operation.count = static_cast<uint64_t>((count + divisor - 1) / divisor);
    if (operation.root >= size) operation.root = 0;
  }

  // Returns the ranks of the new communicator that the rank at `place` uses for an old one.
  std::vector<GlobalRank> RanksOf(GroupKind kind, uint32_t old, const Place& place) const {
    std::vector<GlobalRank> ranks;
    if (kind == GroupKind::kStages) {
      const std::vector<GlobalRank>& old_ranks = trace_.communicators[old].ranks;
      if (StagesChange() && old_ranks.size() == from_.pipeline) {
        ranks = GroupRanks(kind, to_, place);
      } else {  // the first and the last, or some of as many as before
        for (const GlobalRank rank : old_ranks) {
          uint32_t stage = PlaceOf(from_, rank).stage;
          if (stage + 1 == from_.pipeline) stage = to_.pipeline - 1;
          ranks.push_back(RankOf(to_, {place.tensor, place.data, stage}));
        }
      }
    } else {
      ranks = GroupRanks(kind, to_, place);
    }
    return ranks;
  }

  uint32_t NeighborCommunicator(uint32_t old, const Place& place, uint32_t neighbor,
                                int32_t distance) {
    if (trace_.communicators[old].ranks.size() == from_.pipeline) {
      return Communicator({GroupKind::kStages, false}, old,
                          GroupRanks(GroupKind::kStages, to_, place));
    }
    std::vector<GlobalRank> ranks = {RankOf(to_, place),
                                     RankOf(to_, {place.tensor, place.data, neighbor})};
    // Its ranks stay in the order of their stages, as they were.
    const std::vector<GlobalRank>& old_ranks = trace_.communicators[old].ranks;
    const bool is_ascending = old_ranks[0] < old_ranks[1];
    if (is_ascending != (distance > 0)) std::swap(ranks[0], ranks[1]);
    return Communicator({GroupKind::kStages, true}, old, std::move(ranks));
  }

  // The purpose of a communicator. Those of two stages may be of neighbors, or of the first and
  // last.
  struct Role {
    GroupKind kind = GroupKind::kOther;
    bool is_of_neighbors = false;
    auto operator<=>(const Role&) const = default;
  };

  // Old communicators of the same ranks stay different, by their order; and so do those of which
  // the new ones are the same.
  uint32_t Communicator(Role role, uint32_t old, std::vector<GlobalRank> ranks) {
    const auto [at, is_new] = communicator_of_.try_emplace(
        std::tuple(role, trace_.communicators[old].ranks.size(), groups_.NumberOf(old), ranks),
        static_cast<uint32_t>(result_.communicators.size()));
    if (is_new) {
      result_.communicators.push_back(
          {.name = trace_.communicators[old].name, .ranks = std::move(ranks)});
    }
    return at->second;
  }

  const Trace& trace_;
  const TraceDivision& from_;
  const TraceDivision& to_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  ParallelGroups groups_;
  Trace result_;
  std::map<std::tuple<Role, size_t, uint32_t, std::vector<GlobalRank>>, uint32_t> communicator_of_;
};

}  // namespace

std::optional<Trace> RetargetTrace(const Trace& trace, const TraceDivision& from,
                                   const TraceDivision& to, const std::string& file,
                                   Diagnostics& diagnostics) {
  return TraceRetargeter(trace, from, to, file, diagnostics).Run();
}

}  // namespace railyard
