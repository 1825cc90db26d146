// SPDX-License-Identifier: GPL-2.0-only
// A scenario's `workload`: the trace it names, spells out or plans, and whether it can be replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "simulator/diagnostics/text_proto.h"
#include "traces/import_report.h"
#include "traces/trace.h"
#include "workloads/job.h"
#include "workloads/replayable.h"

namespace railyard {

struct ExplicitAlgorithm;
struct Plan;

struct LoadedWorkload {
  Trace trace;
  Job job;
  ReplayChoice forced_replay;
  std::shared_ptr<const ExplicitAlgorithm> algorithm;  // as NcclSettings'
  std::optional<ImportReport> import_report;
  int64_t rank_skew_max_ps = 0;
  std::shared_ptr<const Plan> plan;  // as Scenario's
};

// `workload` is a cursor on a railyard.protos.Workload; `gpu_count` is 0 where the fabric could not
// be loaded; `seed` draws what the workload leaves to chance. nullopt after an error.
std::optional<LoadedWorkload> LoadWorkload(const ProtoCursor& workload, uint32_t gpu_count,
                                           uint64_t seed, Diagnostics& diagnostics);

}  // namespace railyard
