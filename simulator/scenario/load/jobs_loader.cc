// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/jobs_loader.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/scenario/load/gpu_placement.h"
#include "simulator/scenario/load/workload_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/units.h"
#include "workloads/job/job_parts.h"
#include "workloads/layout/gpu_of_rank.h"

namespace railyard {
namespace {

constexpr int64_t kStartPsMax = int64_t{24} * 3600 * kPsPerSecond;

PlacementPolicy PolicyOf(const protos::Placement& message) {
  switch (message.policy()) {
    case protos::Placement::STRIPED:
      return PlacementPolicy::kStriped;
    case protos::Placement::BY_RAIL:
      return PlacementPolicy::kByRail;
    case protos::Placement::RANDOM:
      return PlacementPolicy::kRandom;
    default:
      return PlacementPolicy::kPacked;
  }
}

class JobsLoader {
 public:
  JobsLoader(const ProtoCursor& scenario, const FabricGraph* fabric, uint64_t seed,
             Diagnostics& diagnostics)
      : scenario_(scenario), fabric_(fabric), seed_(seed), diagnostics_(diagnostics) {
    if (fabric != nullptr) job_of_gpu_.resize(fabric->gpus().size(), kNobody);
  }

  std::optional<LoadedWorkload> Load() {
    const int errors_before = diagnostics_.error_count();
    const int count = scenario_.Size("jobs");
    entries_.resize(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) LoadEntry(i);
    CheckNames();
    for (Entry& entry : entries_) {
      if (entry.workload) Place(entry);
    }
    CheckVersions();
    if (diagnostics_.error_count() > errors_before || fabric_ == nullptr) return std::nullopt;
    LoadedWorkload loaded;
    std::vector<Job> jobs;
    for (Entry& entry : entries_) {
      if (!entry.workload) return std::nullopt;
      JobPart& part = entry.workload->job.parts.front();
      part.name = entry.name;
      part.start_ps = entry.start_ps;
      part.global_ranks.clear();
      for (const GpuIndex gpu : entry.gpus) part.global_ranks.push_back(RankOn(gpu));
      jobs.push_back(std::move(entry.workload->job));
      for (ImportReport& report : entry.workload->import_reports) {
        loaded.import_reports.push_back(std::move(report));
      }
    }
    loaded.job = JoinJobs(std::move(jobs));
    return loaded;
  }

 private:
  static constexpr int kNobody = -1;

  struct Entry {
    std::string name;
    int64_t start_ps = 0;
    std::optional<ProtoCursor> cursor;
    std::optional<ProtoCursor> placement;
    std::vector<GpuIndex> gpus;
    std::optional<LoadedWorkload> workload;
  };

  std::string NameOfGpu(GpuIndex gpu) const { return fabric_->device(fabric_->gpus()[gpu]).name; }

  void LoadEntry(int index) {
    Entry& entry = entries_[static_cast<size_t>(index)];
    const ProtoCursor cursor = scenario_.Child("jobs", index);
    entry.cursor = cursor;
    entry.name = cursor.Text("name", fmt::format("job{}", index));
    entry.start_ps = cursor.DurationPs(diagnostics_, "start", 0);
    if (entry.start_ps > kStartPsMax) {
      cursor.Error(diagnostics_, "start",
                   fmt::format("{} is out of range (expected at most {})",
                               Quote(cursor.Text("start", "")), FormatDuration(kStartPsMax)));
    }
    if (cursor.Has("placement")) {
      entry.placement = cursor.Child("placement");
      LoadGpus(index, entry);
    }
    if (!cursor.Has("workload")) {
      cursor.Missing(diagnostics_, "workload", "nccl_log, trace, program or plan in it");
      return;
    }
    entry.workload =
        LoadWorkload(cursor.Child("workload"), static_cast<uint32_t>(job_of_gpu_.size()),
                     static_cast<uint32_t>(entry.gpus.size()), seed_, diagnostics_);
    if (entry.workload && !entry.workload->own_algorithms.empty()) {
      const ProtoCursor workload = cursor.Child("workload");
      const char* const field = workload.Has("schedule") ? "schedule" : "registered_algorithm";
      workload.Error(diagnostics_, field,
                     fmt::format("is not run among several jobs (expected no {}, or a workload in "
                                 "place of jobs)",
                                 field));
    }
  }

  // The GPUs that the placement names.
  void LoadGpus(int index, Entry& entry) {
    const ProtoCursor& placement = *entry.placement;
    const auto& message = placement.As<protos::Placement>();
    if (placement.Has("seed") && message.policy() != protos::Placement::RANDOM) {
      placement.Error(diagnostics_, "seed",
                      "has no effect without policy: RANDOM (expected it with that, or no seed)");
    }
    if (placement.Has("policy") && message.gpus_size() > 0) {
      placement.Error(diagnostics_, "policy", "stands beside gpus (expected one of them)");
    }
    for (int i = 0; i < message.gpus_size() && fabric_ != nullptr; ++i) {
      NameGpus(index, i, message.gpus(i), entry);
    }
  }

  void NameGpus(int index, int field_index, const std::string& pattern, Entry& entry) {
    const size_t named_before = entry.gpus.size();
    std::optional<GpuIndex> first_taken;
    size_t taken = 0;
    for (GpuIndex gpu{0}; gpu < job_of_gpu_.size(); ++gpu) {
      if (!FitsPattern(pattern, NameOfGpu(gpu))) continue;
      entry.gpus.push_back(gpu);
      if (job_of_gpu_[gpu] == kNobody) {
        job_of_gpu_[gpu] = index;
      } else if (taken++ == 0) {
        first_taken = gpu;
      }
    }
    if (entry.gpus.size() == named_before) {
      entry.placement->Error(
          diagnostics_, "gpus",
          fmt::format(R"({} fits no GPU (expected e.g. "server1/gpu3" or "server1/gpu*"))",
                      Quote(pattern)),
          field_index);
    }
    if (first_taken) overlaps_.push_back({index, field_index, *first_taken, taken - 1});
  }

  // Must be called when all names are known, because the suggested free GPU must be one that no job
  // names.
  void ReportOverlaps() {
    for (const Overlap& overlap : overlaps_) {
      const auto nearest = NearestFreeGpu(*fabric_, overlap.gpu, Taken());
      const Entry& owner = entries_[static_cast<size_t>(job_of_gpu_[overlap.gpu])];
      entries_[static_cast<size_t>(overlap.job)].placement->Error(
          diagnostics_, "gpus",
          fmt::format("{} is on job {} already{} (expected a free GPU; {})", NameOfGpu(overlap.gpu),
                      Quote(owner.name),
                      overlap.more == 0 ? "" : fmt::format(", and {} more are taken", overlap.more),
                      nearest ? "the nearest is " + NameOfGpu(*nearest) : "there is none"),
          overlap.field_index);
    }
    overlaps_.clear();
  }

  std::vector<bool> Taken() const {
    std::vector<bool> taken(job_of_gpu_.size());
    for (GpuIndex gpu{0}; gpu < taken.size(); ++gpu) taken[gpu] = job_of_gpu_[gpu] != kNobody;
    return taken;
  }

  void Place(Entry& entry) {
    if (fabric_ == nullptr) return;
    ReportOverlaps();
    const uint32_t ranks = entry.workload->job.rank_count;
    if (!entry.gpus.empty()) {
      if (entry.gpus.size() == ranks) return;
      entry.placement->Error(diagnostics_, "gpus",
                             fmt::format("names {} GPUs, the job has {} ranks (expected one for "
                                         "each)",
                                         entry.gpus.size(), ranks),
                             0);
      return;
    }
    PlacementPolicy policy = PlacementPolicy::kPacked;
    uint64_t seed = seed_;
    if (entry.placement) {
      const auto& message = entry.placement->As<protos::Placement>();
      policy = PolicyOf(message);
      if (message.has_seed()) seed = message.seed();
    }
    const std::vector<bool> taken = Taken();
    auto gpus = PlaceRanks(*fabric_, policy, ranks, seed, taken);
    if (!gpus) {
      const auto free = std::count(taken.begin(), taken.end(), false);
      entry.cursor->Error(
          diagnostics_, entry.placement ? "placement" : "workload",
          fmt::format("the job has {} ranks, and {} of the fabric's {} GPUs are free (expected a "
                      "job of at most {} ranks, or a fabric of at least {} GPUs)",
                      ranks, free, taken.size(), free,
                      taken.size() + ranks - static_cast<size_t>(free)));
      return;
    }
    entry.gpus = *std::move(gpus);
    const auto job = static_cast<int>(&entry - entries_.data());
    for (const GpuIndex gpu : entry.gpus) job_of_gpu_[gpu] = job;
  }

  void CheckNames() {
    std::set<std::string> names;
    for (const Entry& entry : entries_) {
      if (entry.name.empty() || entry.name.find('/') != std::string::npos) {
        entry.cursor->Error(diagnostics_, "name",
                            fmt::format("{} cannot name a job (expected one letter or more, and "
                                        "no \"/\")",
                                        Quote(entry.name)));
      } else if (!names.insert(entry.name).second) {
        entry.cursor->Error(diagnostics_, "name",
                            fmt::format("another job is called {} as well", Quote(entry.name)));
      }
    }
  }

  // One version of NCCL decides the rules of a run.
  void CheckVersions() {
    const bool is_stated = scenario_.Has("nccl") && scenario_.Child("nccl").Has("version");
    const Entry* first = nullptr;
    for (const Entry& entry : entries_) {
      if (is_stated || !entry.workload || entry.workload->job.nccl_version.empty()) continue;
      if (first == nullptr) first = &entry;
      const std::string& version = entry.workload->job.nccl_version;
      const std::string& other = first->workload->job.nccl_version;
      if (version == other) continue;
      entry.cursor->Error(diagnostics_, "workload",
                          fmt::format("its NCCL is {}, that of job {} {} (expected nccl.version to "
                                      "say which holds for both)",
                                      version, Quote(first->name), other));
    }
  }

  struct Overlap {
    int job = 0;
    int field_index = 0;
    GpuIndex gpu{0};
    size_t more = 0;
  };

  const ProtoCursor& scenario_;
  const FabricGraph* fabric_;
  uint64_t seed_;
  Diagnostics& diagnostics_;
  std::vector<Entry> entries_;
  std::vector<int> job_of_gpu_;
  std::vector<Overlap> overlaps_;
};

}  // namespace

std::optional<LoadedWorkload> LoadJobs(const ProtoCursor& scenario, const FabricGraph* fabric,
                                       uint64_t seed, Diagnostics& diagnostics) {
  return JobsLoader(scenario, fabric, seed, diagnostics).Load();
}

}  // namespace railyard
