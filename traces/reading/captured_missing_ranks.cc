// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/captured_missing_ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "traces/reading/captured_matching.h"

namespace railyard {
namespace {

constexpr uint64_t kReconstructedOperationsMax = 64'000'000;

struct Family {
  uint32_t size = 0;
  uint32_t stride = 0;
  auto operator<=>(const Family&) const = default;
};

// The family that a group of these ranks belongs to in a job of `rank_count`.
template <typename Rank>
std::optional<Family> FamilyOf(const std::vector<Rank>& ranks, uint32_t rank_count) {
  const auto size = static_cast<uint32_t>(ranks.size());
  if (size == 0) return std::nullopt;
  const uint32_t stride = size == 1 ? 1 : ranks[1] - ranks[0];
  if (size > 1 && ranks[1] <= ranks[0]) return std::nullopt;
  for (uint32_t i = 1; i < size; ++i) {
    if (ranks[i] - ranks[i - 1] != stride || ranks[i] <= ranks[i - 1]) return std::nullopt;
  }
  const uint64_t block = uint64_t{size} * stride;
  if (block > rank_count || rank_count % block != 0 || ranks[0] % block >= stride) {
    return std::nullopt;
  }
  return Family{size, stride};
}

// The lowest rank of the family's group that `rank` is in.
GlobalRank FirstIn(const Family& family, GlobalRank rank) {
  const uint32_t block = family.size * family.stride;
  return GlobalRank{rank / block * block + rank % family.stride};
}

// The ranks of that group.
std::vector<GlobalRank> GroupIn(const Family& family, GlobalRank rank) {
  const GlobalRank first = FirstIn(family, rank);
  std::vector<GlobalRank> ranks;
  for (uint32_t i = 0; i < family.size; ++i) ranks.emplace_back(first + i * family.stride);
  return ranks;
}

// The families of a job's groups, each determined once: a group may have as many ranks as the job.
class FamiliesOfGroups {
 public:
  FamiliesOfGroups(CapturedJob& job, uint32_t rank_count) : job_(job), rank_count_(rank_count) {}

  std::optional<Family> Of(uint32_t group) {
    const auto [family, is_new] = families_.try_emplace(group);
    if (is_new) family->second = FamilyOf(job_.groups()[group].ranks, rank_count_);
    return family->second;
  }

 private:
  CapturedJob& job_;
  uint32_t rank_count_;
  std::unordered_map<uint32_t, std::optional<Family>> families_;
};

bool IsCall(const CapturedCall& call) {
  return !call.dropped && call.operation.kind != CollectiveKind::kCompute;
}

// Determines whether every Send over a distance in a group of a family has its Recv, and all
// captured ranks make the same of them.
class PointToPointSymmetry {
 public:
  explicit PointToPointSymmetry(uint32_t rank_count) : rank_count_(rank_count) {}

  bool Holds(CapturedJob& job) {
    std::vector<CallsOver> programs;
    FamiliesOfGroups families(job, rank_count_);
    for (const auto& [rank, calls] : job.calls()) {
      CallsOver& program = programs.emplace_back();
      for (const CapturedCall& call : calls) {
        if (!IsCall(call) || !IsSendOrRecv(call.operation.kind)) continue;
        const CapturedGroup& group = job.groups()[call.operation.communicator];
        const auto family = families.Of(call.operation.communicator);
        if (!family) return false;
        const uint32_t self = CommunicatorRankIn(group, rank);
        const uint32_t peer = call.operation.peer;
        const bool is_send = call.operation.kind == CollectiveKind::kSend;
        const uint32_t from = is_send ? self : peer;
        const uint32_t to = is_send ? peer : self;
        auto& [sends, receives] = program[{*family, (to + group.size - from) % group.size}];
        (is_send ? sends : receives)
            .push_back(call.operation.count * DatatypeBytes(call.operation.datatype));
      }
    }
    for (const CallsOver& program : programs) {
      if (program != programs.front()) return false;
    }
    for (const auto& [over, calls] : programs.front()) {
      if (calls.first != calls.second) return false;
    }
    return true;
  }

 private:
  // Bytes of Sends and of Recvs by family and distance from sender to receiver.
  using CallsOver = std::map<std::pair<Family, uint32_t>,
                             std::pair<std::vector<uint64_t>, std::vector<uint64_t>>>;
  uint32_t rank_count_;
};

class Reconstructor {
 public:
  Reconstructor(CapturedJob& job, const Repetition& repetition, Trace& trace, ImportReport& report)
      : job_(job),
        repetition_(repetition),
        trace_(trace),
        report_(report),
        template_(job.calls().begin()->first),
        families_of_groups_(job, trace.rank_count) {}

  bool Run(const SourceLocation& where, Diagnostics& diagnostics) {
    if (repetition_.only_by_group || !AllMakeTheSameCalls())
      return RepeatByGroup(where, diagnostics);
    IndexFamilies();
    const uint64_t operations = trace_.operations[template_].size();
    // Ranks that are in the same groups and have no peers of their own share a program.
    const bool shares = !repetition_.of_point_to_point && AllAreInAllGroups();
    if (!shares && IsTooMuch(operations * MissingCount(), where, diagnostics)) return false;
    uint32_t shared = UINT32_MAX;
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (job_.calls().contains(rank)) continue;
      if (shared == UINT32_MAX || !shares) shared = trace_.operations.AddProgram(ProgramOf(rank));
      trace_.operations.SetProgram(rank, shared);
      ++report_.ranks_reconstructed;
      report_.calls_reconstructed += calls_of_program_;
    }
    report_.reconstructed.push_back(
        fmt::format("{} of {} were not captured: they make the calls of rank {}, each on its own "
                    "groups",
                    MissingCount(), Counted(trace_.rank_count, "rank"), template_));
    for (const uint32_t communicator : not_repeated_) {
      report_.assumed.push_back(fmt::format("calls of group \"{}\" are made by its {} ranks alone",
                                            trace_.communicators[communicator].name,
                                            trace_.communicators[communicator].ranks.size()));
    }
    return true;
  }

 private:
  uint64_t MissingCount() const { return trace_.rank_count - job_.calls().size(); }

  bool IsTooMuch(uint64_t operations, const SourceLocation& where, Diagnostics& diagnostics) const {
    if (operations <= kReconstructedOperationsMax) return false;
    diagnostics.Error(where, "",
                      fmt::format("{} calls of {} would be reconstructed (at most {}; give the "
                                  "files of more ranks)",
                                  operations, Counted(MissingCount(), "missing rank"),
                                  kReconstructedOperationsMax));
    return true;
  }

  bool AllAreInAllGroups() const {
    return std::all_of(
        trace_.communicators.begin(), trace_.communicators.end(),
        [&](const TraceCommunicator& c) { return c.ranks.size() == trace_.rank_count; });
  }

  std::map<Family, uint64_t> CallsByFamily(const std::vector<CapturedCall>& calls) {
    std::map<Family, uint64_t> count;
    for (const CapturedCall& call : calls) {
      if (!IsCall(call)) continue;
      if (const auto family = families_of_groups_.Of(call.operation.communicator)) ++count[*family];
    }
    return count;
  }

  // Also that no group which is of no family needs ranks that the template does not stand for.
  bool AllMakeTheSameCalls() {
    const auto expected = CallsByFamily(job_.calls().begin()->second);
    for (const auto& [rank, calls] : job_.calls()) {
      if (CallsByFamily(calls) != expected) return false;
    }
    return std::all_of(
        trace_.communicators.begin(), trace_.communicators.end(), [&](const TraceCommunicator& c) {
          return FamilyOf(c.ranks, trace_.rank_count) || Contains(c.ranks, template_);
        });
  }

  static bool Contains(const std::vector<GlobalRank>& ranks, GlobalRank rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  // The collectives of each group, from the lowest of its captured ranks to the missing ones.
  bool RepeatByGroup(const SourceLocation& where, Diagnostics& diagnostics) {
    uint64_t operations = 0;
    std::set<uint32_t> completed;
    for (uint32_t c = 0; c < trace_.communicators.size(); ++c) {
      const std::vector<GlobalRank>& ranks = trace_.communicators[c].ranks;
      std::vector<GlobalRank> without;
      std::vector<TraceOperation> program;
      for (const GlobalRank rank : ranks) {
        std::vector<TraceOperation> collectives = CollectivesOf(rank, c);
        if (collectives.empty()) {
          without.push_back(rank);
        } else if (program.empty()) {
          program = std::move(collectives);
        }
      }
      if (program.empty()) continue;
      operations += program.size() * without.size();
      if (IsTooMuch(operations, where, diagnostics)) return false;
      for (const GlobalRank rank : without) {
        std::vector<TraceOperation>& calls = trace_.operations[rank];
        uint32_t stream = 0;
        for (const TraceOperation& call : calls) stream = std::max(stream, call.stream + 1);
        for (TraceOperation& operation : program) operation.stream = stream;
        calls.insert(calls.end(), program.begin(), program.end());
        report_.calls_reconstructed += program.size();
        completed.insert(rank);
      }
    }
    report_.ranks_reconstructed = static_cast<uint32_t>(completed.size());
    report_.reconstructed.push_back(
        fmt::format("{} of {} were not captured, or not in all of their groups, and captured ranks "
                    "make different calls: they make the collectives of their groups that others "
                    "made, each group on a stream of its own",
                    completed.size(), Counted(trace_.rank_count, "rank")));
    return true;
  }

  // The rank's collectives of the communicator, as another rank makes them.
  std::vector<TraceOperation> CollectivesOf(GlobalRank rank, uint32_t communicator) const {
    std::vector<TraceOperation> collectives;
    for (TraceOperation operation : trace_.operations[rank]) {
      if (operation.kind == CollectiveKind::kCompute || operation.communicator != communicator ||
          IsSendOrRecv(operation.kind)) {
        continue;
      }
      operation.after = 0;
      operation.measured_ps = 0;
      operation.begins_iteration = false;
      operation.source_file = operation.source_line = 0;
      collectives.push_back(operation);
    }
    return collectives;
  }

  void IndexFamilies() {
    for (uint32_t c = 0; c < trace_.communicators.size(); ++c) {
      const std::vector<GlobalRank>& ranks = trace_.communicators[c].ranks;
      AddFamily(c, FamilyOf(ranks, trace_.rank_count));
    }
  }

  // Two groups of the same ranks stay two: the n-th of the template is the n-th elsewhere.
  void AddFamily(uint32_t communicator, const std::optional<Family>& family) {
    families_.push_back(family);
    ordinals_.push_back(0);
    if (!family) return;
    std::vector<uint32_t>& same =
        same_ranks_[{*family, trace_.communicators[communicator].ranks.front()}];
    ordinals_.back() = static_cast<uint32_t>(same.size());
    same.push_back(communicator);
  }

  // The communicator of `rank` that is what `communicator` is for the template; UINT32_MAX: none.
  uint32_t Translate(uint32_t communicator, GlobalRank rank) {
    if (PlaceIn(communicator, rank)) return communicator;
    const auto family = families_[communicator];
    if (!family) return UINT32_MAX;
    const uint32_t ordinal = ordinals_[communicator];
    const GlobalRank first = FirstIn(*family, rank);
    std::vector<uint32_t>& same = same_ranks_[{*family, first}];
    while (same.size() <= ordinal) {
      const auto added = static_cast<uint32_t>(trace_.communicators.size());
      trace_.communicators.push_back(
          {.name = fmt::format("{} of rank {}", trace_.communicators[communicator].name, first),
           .ranks = GroupIn(*family, rank)});
      AddFamily(added, family);
    }
    return same[ordinal];
  }

  std::vector<TraceOperation> ProgramOf(GlobalRank rank) {
    const std::vector<TraceOperation> source = trace_.operations[template_];
    std::vector<TraceOperation> program;
    std::vector<uint32_t> place(source.size() + 1);
    std::map<uint32_t, uint32_t> translated;
    calls_of_program_ = 0;
    for (size_t i = 0; i < source.size(); ++i) {
      TraceOperation operation = source[i];
      operation.after = place[operation.after];
      place[i + 1] = operation.after;
      if (operation.kind != CollectiveKind::kCompute) {
        const uint32_t from = operation.communicator;
        const auto known = translated.find(from);
        const uint32_t to =
            known != translated.end() ? known->second : (translated[from] = Translate(from, rank));
        if (to == UINT32_MAX) {
          not_repeated_.insert(from);
          continue;
        }
        operation.communicator = to;
        if (IsSendOrRecv(operation.kind)) {
          if (!repetition_.of_point_to_point) continue;
          const auto size = static_cast<uint32_t>(trace_.communicators[to].ranks.size());
          const uint32_t distance = operation.peer + size - *PlaceIn(from, template_);
          operation.peer = (*PlaceIn(to, rank) + distance) % size;
        }
        ++calls_of_program_;
      }
      operation.source_file = 0;
      operation.source_line = 0;
      operation.measured_ps = 0;
      program.push_back(operation);
      place[i + 1] = static_cast<uint32_t>(program.size());
    }
    return program;
  }

  // The rank's place in the communicator, if it is in it.
  std::optional<uint32_t> PlaceIn(uint32_t communicator, GlobalRank rank) {
    const std::vector<GlobalRank>& ranks = trace_.communicators[communicator].ranks;
    if (const auto family = families_[communicator]) {
      if (FirstIn(*family, rank) != ranks.front()) return std::nullopt;
      return (rank - ranks.front()) / family->stride;
    }
    auto& places = places_[communicator];
    if (places.empty()) {
      for (uint32_t place = 0; place < ranks.size(); ++place) places.emplace(ranks[place], place);
    }
    const auto place = places.find(rank);
    return place == places.end() ? std::nullopt : std::optional(place->second);
  }

  CapturedJob& job_;
  Repetition repetition_;
  Trace& trace_;
  ImportReport& report_;
  GlobalRank template_;
  FamiliesOfGroups families_of_groups_;
  std::vector<std::optional<Family>> families_;  // by communicator
  std::vector<uint32_t> ordinals_;               // by communicator: among those of the same ranks
  // Communicators by family and lowest rank.
  std::map<std::pair<Family, uint32_t>, std::vector<uint32_t>> same_ranks_;
  // By communicator that is of no family: places of its ranks.
  std::unordered_map<uint32_t, std::unordered_map<uint32_t, uint32_t>> places_;
  std::set<uint32_t> not_repeated_;
  uint64_t calls_of_program_ = 0;
};

}  // namespace

bool DropWhatCannotBeRepeated(CapturedJob& job, uint32_t rank_count, ImportReport& report) {
  if (PointToPointSymmetry(rank_count).Holds(job)) return true;
  for (auto& [rank, calls] : job.calls()) {
    for (CapturedCall& call : calls) {
      if (!IsCall(call) || !IsSendOrRecv(call.operation.kind)) continue;
      const CapturedGroup& group = job.groups()[call.operation.communicator];
      if (job.calls().contains(group.ranks[call.operation.peer])) continue;
      DropCapturedCall(call, CallDropReason::kRanksMissing,
                       "its peer is missing, and Sends and Recvs are not alike on all ranks",
                       report);
    }
  }
  return false;
}

bool ReconstructMissingRanks(CapturedJob& job, const Repetition& repetition, Trace& trace,
                             ImportReport& report, const SourceLocation& where,
                             Diagnostics& diagnostics) {
  return Reconstructor(job, repetition, trace, report).Run(where, diagnostics);
}

}  // namespace railyard
