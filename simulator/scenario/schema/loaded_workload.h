// SPDX-License-Identifier: GPL-2.0-only
// Holds a scenario's `workload` as loaded and checked.
#pragma once

#include <memory>
#include <vector>

#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"
#include "workloads/job/job.h"

namespace railyard {

struct ExplicitAlgorithm;
struct Plan;

struct LoadedWorkload {
  std::shared_ptr<const Trace> trace;  // nullptr with several jobs
  Job job;
  std::vector<std::shared_ptr<const ExplicitAlgorithm>> own_algorithms;  // as in NcclSettings
  std::vector<ImportReport> import_reports;                              // of imported logs, by job
  std::shared_ptr<const Plan> plan;                                      // as in Scenario
};

}  // namespace railyard
