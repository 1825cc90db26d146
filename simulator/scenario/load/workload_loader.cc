// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/workload_loader.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/load/program_trace.h"
#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/scenario/schema/workload_source.h"
#include "simulator/units/units.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_file.h"
#include "workloads/collectives/explicit_check.h"
#include "workloads/collectives/registered_algorithms.h"
#include "workloads/collectives/replayable.h"
#include "workloads/job/job_cut.h"
#include "workloads/plans/synthesis/plan_loader.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

constexpr int64_t kRankSkewPsMax = kPsPerSecond;

// Reports a path that is no file at the field that names it.
bool IsFile(const ProtoCursor& cursor, const char* field, int index, Diagnostics& diagnostics) {
  const std::string path = cursor.FilePath(field, index);
  const std::string problem = WhyNotAFile(path);
  if (problem.empty()) return true;
  cursor.Error(diagnostics, field, fmt::format("{}: {}", Quote(path, kQuotedPathBytesMax), problem),
               index);
  return false;
}

std::vector<NcclLogOptions::RankOf> LoadRankMap(const ProtoCursor& log, Diagnostics& diagnostics) {
  std::vector<NcclLogOptions::RankOf> rank_map;
  for (int i = 0; i < log.Size("rank_map"); ++i) {
    const ProtoCursor cursor = log.Child("rank_map", i);
    if (!cursor.Has("host")) {
      cursor.Missing(diagnostics, "host", R"(as in the log's prefix, e.g. "node0")");
    }
    if (!cursor.Has("pid")) cursor.Missing(diagnostics, "pid", "as in the log's prefix");
    if (!cursor.Has("rank")) cursor.Missing(diagnostics, "rank", "its rank in the job, from 0");
    const auto& message = cursor.As<protos::RankOf>();
    NcclLogOptions::RankOf entry{.host = message.host(),
                                 .pid = message.pid(),
                                 .device = std::nullopt,
                                 .rank = message.rank(),
                                 .where = cursor.WhereSelf()};
    if (message.has_device()) entry.device = message.device();
    rank_map.push_back(std::move(entry));
  }
  return rank_map;
}

std::optional<Trace> LoadNcclLog(const ProtoCursor& log, std::vector<ImportReport>& reports,
                                 Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  NcclLogOptions options;
  if (log.Size("files") == 0) log.Missing(diagnostics, "files", "one log or more");
  for (int i = 0; i < log.Size("files"); ++i) {
    if (IsFile(log, "files", i, diagnostics)) options.files.push_back(log.FilePath("files", i));
  }
  options.rank_map = LoadRankMap(log, diagnostics);
  const auto& message = log.As<protos::NcclLog>();
  if (message.missing_ranks() == protos::NcclLog::RECONSTRUCT) {
    options.missing_ranks = NcclLogOptions::MissingRanks::kReconstruct;
  }
  if (diagnostics.error_count() > errors_before || log.IsDoubtfulSelf()) return std::nullopt;

  TraceImport import = ReadNcclLogs(options, diagnostics);
  const ImportReport& report = reports.emplace_back(std::move(import.report));
  if (!import.trace && diagnostics.error_count() == errors_before) {
    log.Error(diagnostics, "files",
              fmt::format("no collective call can be replayed ({} seen, {} dropped)",
                          report.calls_seen(), report.calls_dropped()),
              0);
  }
  return std::move(import.trace);
}

// Returns the sets (--set) that apply to fields of the plan's file.
std::vector<std::string> SetsOfPlan(const ProtoCursor& workload) {
  const auto& sets = workload.file().sets_of_files;
  const auto of_plan = sets.find(workload.Path("plan"));
  return of_plan == sets.end() ? std::vector<std::string>() : of_plan->second;
}

std::optional<Trace> TraceOf(std::optional<Plan> plan, LoadedWorkload& loaded) {
  if (!plan) return std::nullopt;
  loaded.plan = std::make_shared<const Plan>(*std::move(plan));
  return Synthesize(*loaded.plan);
}

std::optional<Trace> LoadProgram(const ProtoCursor& program, uint32_t gpu_count,
                                 uint32_t program_ranks, uint64_t seed, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  if (program.Has("ranks")) {
    program_ranks = static_cast<uint32_t>(
        program.Number(diagnostics, "ranks", 0, 1, gpu_count > 0 ? gpu_count : kTraceRanksMax));
  } else if (program_ranks == 0 && gpu_count > 0) {
    program.Missing(diagnostics, "ranks", "on how many GPUs this job runs");
  }
  auto trace = MakeProgramTrace(program, program_ranks, seed, diagnostics);
  return diagnostics.error_count() > errors_before ? std::nullopt : std::move(trace);
}

// The trace, and the field it came from.
std::optional<Trace> LoadTrace(const ProtoCursor& workload, const char* source, uint32_t gpu_count,
                               uint32_t program_ranks, uint64_t seed, LoadedWorkload& loaded,
                               Diagnostics& diagnostics) {
  const std::string name = source;
  if (name == "nccl_log")
    return LoadNcclLog(workload.Child(source), loaded.import_reports, diagnostics);
  if (name == "program") {
    return LoadProgram(workload.Child(source), gpu_count, program_ranks, seed, diagnostics);
  }
  if (name == "inline_plan") {
    return TraceOf(LoadPlan(workload.Child(source), diagnostics), loaded);
  }
  if (!IsFile(workload, source, -1, diagnostics)) return std::nullopt;
  if (name == "plan") {
    return TraceOf(LoadPlanFile(workload.FilePath(source), SetsOfPlan(workload), diagnostics,
                                workload.Path("plan") + "."),
                   loaded);
  }
  return ReadTrace(workload.FilePath(source), diagnostics);
}

ReplayChoice ForcedChoice(const protos::Workload& message) {
  ReplayChoice forced;
  switch (message.algorithm()) {
    case protos::Workload::RING:
      forced.algorithm = Algorithm::kRing;
      break;
    case protos::Workload::TREE:
      forced.algorithm = Algorithm::kTree;
      break;
    case protos::Workload::COLLNET_DIRECT:
      forced.algorithm = Algorithm::kCollnetDirect;
      break;
    case protos::Workload::COLLNET_CHAIN:
      forced.algorithm = Algorithm::kCollnetChain;
      break;
    case protos::Workload::NVLS:
      forced.algorithm = Algorithm::kNvls;
      break;
    case protos::Workload::NVLS_TREE:
      forced.algorithm = Algorithm::kNvlsTree;
      break;
    case protos::Workload::PAT:
      forced.algorithm = Algorithm::kPat;
      break;
    case protos::Workload::DIRECT:
      forced.algorithm = Algorithm::kDirect;
      break;
    case protos::Workload::HALVING_DOUBLING:
      forced.algorithm = Algorithm::kHalvingDoubling;
      break;
    default:
      break;
  }
  switch (message.protocol()) {
    case protos::Workload::LL:
      forced.protocol = Protocol::kLl;
      break;
    case protos::Workload::LL128:
      forced.protocol = Protocol::kLl128;
      break;
    case protos::Workload::SIMPLE:
      forced.protocol = Protocol::kSimple;
      break;
    default:
      break;
  }
  return forced;
}

int64_t LoadRankSkew(const ProtoCursor& workload, Diagnostics& diagnostics) {
  const int64_t skew_ps = workload.DurationPs(diagnostics, "rank_skew_max", 0);
  if (skew_ps <= kRankSkewPsMax) return skew_ps;
  workload.Error(
      diagnostics, "rank_skew_max",
      fmt::format("{} is too long (expected at most {})", Quote(workload.Text("rank_skew_max", "")),
                  FormatDuration(kRankSkewPsMax)));
  return 0;
}

bool IsBroadcastOrReduce(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

void Add(const std::shared_ptr<const ExplicitAlgorithm>& algorithm, LoadedWorkload& loaded) {
  loaded.own_algorithms.push_back(algorithm);
  if (algorithm->kind == CollectiveKind::kAllToAll) {
    PlanAllToAllsWhole(algorithm->rank_count, loaded.job);
  }
}

// Loads the algorithm of `workload.schedule`, which must be of some collective of the job.
void LoadSchedule(const ProtoCursor& workload, LoadedWorkload& loaded, Diagnostics& diagnostics) {
  if (!workload.Has("schedule") || !IsFile(workload, "schedule", -1, diagnostics)) return;
  const auto algorithm = LoadScheduleFile(workload.FilePath("schedule"), diagnostics);
  if (!algorithm) return;
  Add(algorithm, loaded);
  const auto is_of = [&](const JobCollective& collective) {
    return collective.kind == algorithm->kind && collective.rank_count == algorithm->rank_count;
  };
  const std::vector<JobCollective>& collectives = loaded.job.collectives;
  if (std::any_of(collectives.begin(), collectives.end(), is_of)) return;
  std::set<uint32_t> ranks;  // of the job's collectives of this kind
  for (const JobCollective& collective : collectives) {
    if (collective.kind == algorithm->kind) ranks.insert(collective.rank_count);
  }
  const bool has_exchanges = std::ranges::any_of(collectives, &JobCollective::is_all_to_all_v);
  if (ranks.empty() && algorithm->kind == CollectiveKind::kAllToAll && has_exchanges) {
    workload.Error(diagnostics, "schedule",
                   "is of AllToAll, and the job has AllToAllvs alone, which are Sends and Recvs of "
                   "each pair's bytes (expected a job with an AllToAll)");
    return;
  }
  if (ranks.empty()) {
    workload.Error(diagnostics, "schedule",
                   fmt::format("is of {} over {} ranks, and the job has none (expected a schedule "
                               "of one of its collectives)",
                               CollectiveKindName(algorithm->kind), algorithm->rank_count));
    return;
  }
  workload.Error(diagnostics, "schedule",
                 fmt::format("is of {} over {} ranks, and the job has it over {} (expected a "
                             "schedule of as many, or a job of {} GPUs)",
                             CollectiveKindName(algorithm->kind), algorithm->rank_count,
                             fmt::join(ranks, ", "), algorithm->rank_count));
}

// The job's collectives that an algorithm may serve, each kind, number of ranks and root once.
std::vector<AlgorithmRequest> RequestsOf(const Job& job) {
  std::set<std::tuple<CollectiveKind, uint32_t, RankIndex>> seen;
  std::vector<AlgorithmRequest> requests;
  for (const JobCollective& collective : job.collectives) {
    const CollectiveKind kind = collective.kind;
    const bool is_served = kind == CollectiveKind::kAllReduce || IsBroadcastOrReduce(kind) ||
                           kind == CollectiveKind::kAllGather ||
                           kind == CollectiveKind::kReduceScatter ||
                           kind == CollectiveKind::kAllToAll;
    if (!is_served || collective.rank_count < 2 || collective.rank_count > kAlgorithmRanksMax) {
      continue;
    }
    const RankIndex root = IsBroadcastOrReduce(kind) ? collective.root : RankIndex{0};
    if (seen.insert({kind, collective.rank_count, root}).second) {
      requests.push_back({.kind = kind, .rank_count = collective.rank_count, .root = root});
    }
  }
  return requests;
}

// Loads what `workload.registered_algorithm` makes for the job's collectives, and checks it.
void LoadRegisteredAlgorithm(const ProtoCursor& workload, LoadedWorkload& loaded,
                             Diagnostics& diagnostics) {
  constexpr const char* kField = "registered_algorithm";
  if (!workload.Has(kField)) return;
  if (workload.Has("schedule")) {
    workload.Error(diagnostics, kField, "stands beside schedule (expected one of them)");
    return;
  }
  const std::string name = workload.Text(kField, "");
  const std::vector<std::string> names = RegisteredAlgorithms();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    workload.Error(diagnostics, kField, UnknownName("algorithm", name, names));
    return;
  }
  for (const AlgorithmRequest& request : RequestsOf(loaded.job)) {
    const auto algorithm = MakeAlgorithm(name, request);
    if (!algorithm) continue;
    SchedulePlace place;
    if (const std::string wrong = WhatIsWrong(algorithm, place); !wrong.empty()) {
      workload.Error(
          diagnostics, kField,
          fmt::format("{} over {} ranks: rank {}, channel {}: {}", CollectiveKindName(request.kind),
                      request.rank_count, place.lane.rank, place.lane.channel, wrong));
      return;
    }
    Add(algorithm, loaded);
  }
  if (loaded.own_algorithms.empty()) {
    workload.Error(diagnostics, kField,
                   fmt::format("{} serves no collective of the job (expected an algorithm for one "
                               "of them)",
                               Quote(name)));
  }
}

// Refuses an algorithm and a protocol that no collective is left to run with.
void RefuseUnusedChoice(const ProtoCursor& workload, const LoadedWorkload& loaded,
                        Diagnostics& diagnostics) {
  if (loaded.own_algorithms.empty()) return;
  const auto is_open = [&](const JobCollective& collective) {
    if (collective.is_p2p() || collective.rank_count < 2) return false;
    return std::ranges::none_of(loaded.own_algorithms, [&](const auto& algorithm) {
      return algorithm->kind == collective.kind && algorithm->rank_count == collective.rank_count &&
             (!IsBroadcastOrReduce(collective.kind) || algorithm->root == collective.root);
    });
  };
  if (std::ranges::any_of(loaded.job.collectives, is_open)) return;
  const char* const by = workload.Has("schedule") ? "schedule" : "registered_algorithm";
  for (const char* field : {"algorithm", "protocol"}) {
    if (!workload.Has(field)) continue;
    workload.Error(
        diagnostics, field,
        fmt::format("has no effect: {} runs every collective (expected one of the two)", by));
  }
}

}  // namespace

std::optional<LoadedWorkload> LoadWorkload(const ProtoCursor& workload, uint32_t gpu_count,
                                           uint32_t program_ranks, uint64_t seed,
                                           Diagnostics& diagnostics,
                                           std::shared_ptr<const Trace> calls) {
  const int errors_before = diagnostics.error_count();
  const char* const source = WorkloadSourceOf(workload);
  if (source == nullptr) {
    if (!workload.IsDoubtful("trace") && !workload.IsDoubtful("program") &&
        !workload.IsDoubtful("plan") && !workload.IsDoubtful("inline_plan")) {
      workload.Missing(diagnostics, "nccl_log", "nccl_log, trace, program, plan or inline_plan");
    }
    return std::nullopt;
  }
  if (source != std::string_view("plan")) {
    for (const std::string& set : SetsOfPlan(workload)) {
      diagnostics.Error(SetLocation(set), workload.Path("plan"),
                        "the workload names no plan (expected workload.plan, or the fields of "
                        "inline_plan)");
    }
  }
  LoadedWorkload loaded;
  const ReplayChoice forced = ForcedChoice(workload.As<protos::Workload>());
  const int64_t rank_skew_max_ps = LoadRankSkew(workload, diagnostics);
  const uint64_t operations_max =
      workload.Number(diagnostics, "operations_max", UINT32_MAX, 1, UINT32_MAX);
  loaded.trace = std::move(calls);
  if (loaded.trace == nullptr) {
    auto trace = LoadTrace(workload, source, gpu_count, program_ranks, seed, loaded, diagnostics);
    if (!trace) return std::nullopt;
    loaded.trace = std::make_shared<const Trace>(*std::move(trace));
  }
  if (gpu_count > 0 && loaded.trace->rank_count > gpu_count) {
    workload.Error(diagnostics, source,
                   fmt::format("the job has {} ranks, the fabric {} GPUs (expected one for each)",
                               loaded.trace->rank_count, gpu_count));
  }
  std::optional<Job> job = BuildJob(*loaded.trace, diagnostics);
  if (!job) return std::nullopt;
  loaded.job = std::move(*job);
  loaded.job.parts.front().rank_skew_max_ps = rank_skew_max_ps;
  for (JobCollective& collective : loaded.job.collectives) {
    collective.forced_algorithm = forced.algorithm;
    collective.forced_protocol = forced.protocol;
  }
  KeepFirstCollectives(operations_max, loaded.job);
  if (workload.Has("operations_max")) loaded.plan.reset();
  if (loaded.job.collectives.empty()) {
    workload.Error(diagnostics, source, "holds no collective (expected at least one)");
  }
  LoadSchedule(workload, loaded, diagnostics);
  LoadRegisteredAlgorithm(workload, loaded, diagnostics);
  RefuseUnusedChoice(workload, loaded, diagnostics);
  if (diagnostics.error_count() > errors_before || workload.IsDoubtfulSelf()) return std::nullopt;
  return loaded;
}

}  // namespace railyard
