// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/choice_check.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/scenario/schema/workload_source.h"
#include "workloads/collectives/replayable.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

// Collectives of one kind that are refused for one reason.
struct Refused {
  uint64_t count = 0;
  const JobCollective* first = nullptr;
  std::string suitable;  // what the first could run as
};
using RefusedKey = std::tuple<PartIndex, CollectiveKind, ReplayChoice>;  // part of the job first

std::string SuitableNames(const NcclPlanner& planner, const JobCollective& collective) {
  std::vector<std::string> names;
  for (const ReplayChoice& choice : ReplayableChoices()) {
    if (planner.Choose(collective, choice)) names.push_back(ReplayName(choice));
  }
  return names.empty() ? "another kind of collective" : JoinAlternatives(names);
}

std::map<RefusedKey, Refused> RefusedOf(const LoadedWorkload& workload,
                                        const CommunicatorPlanners& planners) {
  std::map<RefusedKey, Refused> refused;
  // Regular jobs repeat few.
  std::map<std::tuple<CommunicatorIndex, CollectiveKind, uint64_t, Datatype, ReplayChoice>, bool>
      known;
  for (const JobCollective& collective : workload.job.collectives) {
    if (collective.is_p2p()) continue;
    const ReplayChoice stated = StatedChoice(collective);
    const auto [at, is_new] = known.try_emplace(
        {collective.communicator, collective.kind, collective.bytes, collective.datatype, stated},
        true);
    const NcclPlanner& planner = *planners[collective.communicator];
    if (is_new) at->second = planner.Choose(collective, stated).has_value();
    if (at->second) continue;
    Refused& entry =
        refused[{workload.job.PartOf(collective.communicator), collective.kind, stated}];
    if (entry.count++ > 0) continue;
    entry.first = &collective;
    entry.suitable = SuitableNames(planner, collective);
  }
  return refused;
}

// Refuses `nccl.ALGO` where each part of the job states an algorithm, which replaces its choice.
void RefuseReplacedAlgo(const ProtoCursor& scenario, const Job& job, Diagnostics& diagnostics) {
  if (!scenario.Has("nccl") || !scenario.Child("nccl").Has("ALGO")) return;
  for (PartIndex part{}; part < job.parts.size(); ++part) {
    if (!WorkloadOfPart(scenario, part).Has("algorithm")) return;
  }
  scenario.Child("nccl").Error(
      diagnostics, "ALGO",
      fmt::format("has no effect: {} replaces it (expected one of the two)",
                  WorkloadOfPart(scenario, PartIndex{0}).Path("algorithm")));
}

}  // namespace

void CheckChoices(const ProtoCursor& scenario, const LoadedWorkload& workload,
                  const CommunicatorPlanners& planners, Diagnostics& diagnostics) {
  RefuseReplacedAlgo(scenario, workload.job, diagnostics);
  for (const auto& [key, entry] : RefusedOf(workload, planners)) {
    const auto& [part, kind, stated] = key;
    const ProtoCursor cursor = WorkloadOfPart(scenario, part);
    const auto& message = cursor.As<protos::Workload>();
    if (cursor.IsDoubtful("algorithm") || cursor.IsDoubtful("protocol")) continue;
    const std::string which =
        fmt::format("{} {}{}", entry.count, CollectiveKindName(kind), entry.count == 1 ? "" : "s");
    if (message.has_algorithm() || message.has_protocol()) {
      cursor.Error(diagnostics, message.has_algorithm() ? "algorithm" : "protocol",
                   fmt::format("{} cannot run as {} on {} ranks of this fabric (expected {})",
                               which, ReplayName(stated), entry.first->rank_count, entry.suitable));
      continue;
    }
    if (stated == ReplayChoice{}) {
      scenario.Child("nccl").Error(
          diagnostics, scenario.Child("nccl").Has("ALGO") ? "ALGO" : "PROTO",
          fmt::format("leaves {} no algorithm and protocol to run as (expected {} among them)",
                      which, entry.suitable));
      continue;
    }
    cursor.Error(diagnostics, WorkloadSourceOf(cursor),
                 fmt::format("{} ran as {}, which cannot be replayed here (expected {}; "
                             "{}: RING replays them so)",
                             which, ReplayName(stated), entry.suitable, cursor.Path("algorithm")));
    const std::vector<std::string>& files = workload.job.source_files;
    if (entry.first->source_file < files.size() && entry.first->source_line > 0) {
      diagnostics.Note(
          {files[entry.first->source_file], static_cast<int>(entry.first->source_line)}, "",
          "the first of them");
    }
  }
}

}  // namespace railyard
