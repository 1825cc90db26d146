// SPDX-License-Identifier: GPL-2.0-only
// Loads a scenario's `workload`, a trace that it names, spells out or plans, and checks that it can
// be replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"
#include "workloads/job/job.h"

namespace railyard {

struct ExplicitAlgorithm;
struct Plan;

struct LoadedWorkload {
  Trace trace;  // empty where there are several
  Job job;
  std::vector<std::shared_ptr<const ExplicitAlgorithm>> own_algorithms;  // as NcclSettings'
  std::vector<ImportReport> import_reports;                              // of logs read, by job
  std::shared_ptr<const Plan> plan;                                      // as Scenario's
};

// `workload` is a cursor on a railyard.protos.Workload. `gpu_count` is 0 if the fabric could not be
// loaded. `program_ranks` are the ranks of a program that does not state them; 0 if it must. `seed`
// draws what the workload leaves to chance. `calls` are those that `workload.trace` names, if a
// program has them in memory. Returns nullopt after an error.
std::optional<LoadedWorkload> LoadWorkload(const ProtoCursor& workload, uint32_t gpu_count,
                                           uint32_t program_ranks, uint64_t seed,
                                           Diagnostics& diagnostics, const Trace* calls = nullptr);

// Returns the field of a Workload that is its source; nullptr if there is none.
const char* WorkloadSourceOf(const ProtoCursor& workload);

// Returns the Workload from which a part of the job was loaded. `scenario` is a cursor on the whole
// scenario.
ProtoCursor WorkloadOfPart(const ProtoCursor& scenario, uint32_t part);

}  // namespace railyard
