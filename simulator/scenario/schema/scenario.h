// SPDX-License-Identifier: GPL-2.0-only
// Describes one run, checked and complete: the contents of a scenario file in the types of the
// libraries that use them. It contains no protobuf and no path of a file that has not been read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/fabric/routing_delays.h"
#include "simulator/faults/fault_spec.h"
#include "simulator/scenario/schema/model_attribute.h"
#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/scenario/schema/switch_variant.h"
#include "simulator/scenario/schema/watchdog_settings.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "traces/trace/import_report.h"
#include "workloads/job/job.h"
#include "workloads/layout/communicator_planners.h"
#include "workloads/nccl/gpu_costs.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

struct Plan;

struct Scenario {
  std::string name;  // usable as a file name
  std::string path;
  uint64_t seed = 1;
  FabricGraph fabric;
  Job job;  // one or several jobs; rank r is on GPU r, and there are enough GPUs
  NcclSettings nccl;
  CommunicatorPlanners planners;  // of `job`, by `nccl`, on `fabric`
  GpuCosts gpu;
  NetworkStackSettings stack;                  // of `net`, `nic`, `nics` and `nccl`
  std::vector<ModelAttribute> models;          // of the fabric; others have their defaults
  std::vector<SwitchVariant> switch_variants;  // switches with other attributes than `models`
  RoutingDelays routing;
  WatchdogSettings watchdog;
  std::vector<RestartSettings> restarts;  // by part of the job
  std::vector<FaultSpec> faults;
  std::vector<ImportReport> import_reports;  // of imported logs, by job
  std::shared_ptr<const Plan> plan;          // of which `job` is the whole; nullptr without a plan
  uint64_t exchange_connections = 0;         // least number of those of Sends, Recvs and exchanges
  std::vector<std::string> notes;            // assumptions on the user's behalf
};

}  // namespace railyard
