// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/scenario_loader.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/utf8.h"
#include "simulator/scenario/check/choice_check.h"
#include "simulator/scenario/check/connection_check.h"
#include "simulator/scenario/check/packet_check.h"
#include "simulator/scenario/check/run_size.h"
#include "simulator/scenario/check/time_check.h"
#include "simulator/scenario/faults/fault_loader.h"
#include "simulator/scenario/load/jobs_loader.h"
#include "simulator/scenario/load/restart_loader.h"
#include "simulator/scenario/load/workload_loader.h"
#include "simulator/scenario/models/calibration_loader.h"
#include "simulator/scenario/models/fabric_models_loader.h"
#include "simulator/scenario/models/net_ib_loader.h"
#include "simulator/scenario/models/net_loader.h"
#include "simulator/scenario/models/net_socket_loader.h"
#include "simulator/scenario/models/nic_failover_loader.h"
#include "simulator/scenario/models/nic_loader.h"
#include "simulator/scenario/models/nics_loader.h"
#include "simulator/scenario/models/routing_loader.h"
#include "simulator/scenario/models/settings_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "topologies/formats/topology_loader.h"
#include "topologies/graph/fabric_copy.h"
#include "topologies/routing/deadlock.h"
#include "workloads/job/job_parts.h"

namespace railyard {
namespace {

constexpr size_t kNameBytesMax = 128;

bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '.' && name[0] != '-' &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "._-") == std::string::npos;
}

// Returns the name of a file without its ending, with "_" for a leading dot and for what cannot be
// printed.
std::string StemOf(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem().string();
  const bool is_valid = ToValidUtf8(stem) == stem;
  for (char& c : stem) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f || (!is_valid && byte >= 0x80)) c = '_';
  }
  if (stem.starts_with('.')) stem[0] = '_';
  return stem;
}

// The name stands in results and is the default directory's: never more than one path component.
std::string LoadName(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  std::string name = scenario.Text("name", StemOf(scenario.file().path));
  if (scenario.Has("name") && !IsFileName(name)) {
    scenario.Error(diagnostics, "name",
                   fmt::format("{} cannot name a result (expected up to {} letters, digits, "
                               "\".\", \"_\" or \"-\", a letter, a digit or \"_\" first)",
                               Quote(name), kNameBytesMax));
  }
  return name;
}

void AddNotes(const ImportReport& report, std::vector<std::string>& notes) {
  notes.insert(notes.end(), report.reconstructed.begin(), report.reconstructed.end());
  notes.insert(notes.end(), report.assumed.begin(), report.assumed.end());
}

// Kernels of experts write by RDMA themselves, whatever NCCL uses.
void CheckExpertKernels(const ProtoCursor& scenario, const Job& job, NetPlugin net,
                        Diagnostics& diagnostics) {
  const auto is_of_kernel = [](const JobCollective& collective) {
    return collective.expert_kernel != ExpertKernel::kNone;
  };
  if (net == NetPlugin::kIb || std::ranges::none_of(job.collectives, is_of_kernel)) return;
  const ProtoCursor nccl = scenario.Child("nccl");
  nccl.Error(diagnostics, nccl.Has("NET") ? "NET" : "IB_DISABLE",
             "the job's kernels of experts write by RDMA over InfiniBand or RoCE (expected IB, or "
             "experts of kernel: NCCL)");
}

// If packets overtake one another, a gap does not indicate a loss.
void CheckLossTolerance(const ProtoCursor& scenario, const Job& job, NetPlugin net,
                        Diagnostics& diagnostics) {
  if (!ToleratesLoss(job)) return;
  if (net != NetPlugin::kIb) {
    const ProtoCursor nccl = scenario.Child("nccl");
    nccl.Error(diagnostics, nccl.Has("NET") ? "NET" : "IB_DISABLE",
               fmt::format("{} delivers every byte (expected RDMA, or no loss_tolerance)",
                           net == NetPlugin::kSocket ? "TCP" : "EFA"));
  }
  const auto& message = scenario.As<protos::Scenario>();
  if (message.nic().reorder_tolerance_packets() > 0) {
    scenario.Child("nic").Error(diagnostics, "reorder_tolerance_packets",
                                "takes for late what a loss_tolerance takes for lost (expected one "
                                "of them)");
  }
  const auto balancing = message.network().load_balancing();
  if (message.network().has_load_balancing() && balancing != protos::Network::ECMP) {
    scenario.Child("network").Error(diagnostics, "load_balancing",
                                    "reorders, and a loss_tolerance takes what is late for lost "
                                    "(expected ECMP)");
  }
}

// Link-level credits are InfiniBand's.
bool IsInfiniband(const ProtoCursor& scenario) {
  const auto& message = scenario.As<protos::Scenario>();
  if (!message.network().has_network_flow_control()) return HasCreditsByDefault();
  return message.network().network_flow_control() == protos::Network::CREDITS;
}

// Reduction in the network needs InfiniBand's switches, and the same routes for every NIC of a
// tree.
void CheckCollnet(const ProtoCursor& scenario, const NcclSettings& settings,
                  const FabricGraph* fabric, Diagnostics& diagnostics) {
  if (!settings.collnet_enable) return;
  const ProtoCursor nccl = scenario.Child("nccl");
  if (!IsInfiniband(scenario)) {
    nccl.Error(diagnostics, "COLLNET_ENABLE",
               "1 needs switches that reduce, which are InfiniBand's (expected "
               "network.network_flow_control: CREDITS beside it, or 0)");
  }
  if (fabric != nullptr && IsValiant(fabric->routing)) {
    nccl.Error(diagnostics, "COLLNET_ENABLE",
               fmt::format("1 needs routes that meet in a tree, and {} draws detours (expected "
                           "another routing of the fabric, or 0)",
                           RoutingPolicyName(fabric->routing)));
  }
}

void WarnOfSize(const ProtoCursor& scenario, uint64_t exchange_connections,
                Diagnostics& diagnostics) {
  const std::string why = WhyTooLarge(exchange_connections);
  if (why.empty()) return;
  const char* const field = scenario.Has("workload") ? "workload" : "jobs";
  diagnostics.Warning(scenario.Where(field), scenario.Path(field), "run will refuse it: " + why);
}

// Warns of deadlocks that pauses or credits may cause in a run.
void WarnOfDeadlock(const ProtoCursor& scenario, const FabricGraph& fabric,
                    std::vector<std::string>& notes, Diagnostics& diagnostics) {
  const auto& message = scenario.As<protos::Scenario>();
  if (message.network().network_flow_control() == protos::Network::NONE) return;
  const DeadlockReport report = FindDeadlock(fabric);
  if (report.cycle.empty()) return;
  const std::string what =
      fmt::format("packets can wait for each other in a circle, which ends no more: {} > {}",
                  fmt::join(report.cycle, " > "), report.cycle.front());
  diagnostics.Warning(scenario.Where("fabric"), scenario.Path("fabric"), what);
  notes.push_back("the fabric can deadlock: " + what);
}

std::optional<FabricGraph> LoadFabricOrPart(const ProtoCursor& fabric, const ScenarioParts& parts,
                                            Diagnostics& diagnostics) {
  if (parts.fabric == nullptr || fabric.Text("file", "") != kFabricInMemory) {
    return LoadFabric(fabric, diagnostics);
  }
  if (!CanRun(*parts.fabric, fabric, diagnostics)) return std::nullopt;
  return CopyOf(*parts.fabric);
}

// nullptr: the workload is what its fields say.
std::shared_ptr<const Trace> CallsInMemory(const ProtoCursor& scenario,
                                           const ScenarioParts& parts) {
  const bool are_meant = scenario.Child("workload").Text("trace", "") == kCallsInMemory;
  return are_meant ? parts.calls : nullptr;
}

std::optional<LoadedWorkload> LoadWorkloadOrJobs(const ProtoCursor& cursor,
                                                 const FabricGraph* fabric,
                                                 const Scenario& scenario,
                                                 const ScenarioParts& parts,
                                                 Diagnostics& diagnostics) {
  if (!cursor.Has("workload")) {
    if (cursor.Size("jobs") > 0) return LoadJobs(cursor, fabric, scenario.seed, diagnostics);
    cursor.Missing(diagnostics, "workload", "nccl_log, trace, program or plan in it; or jobs");
    return std::nullopt;
  }
  const auto gpu_count = fabric != nullptr ? static_cast<uint32_t>(fabric->gpus().size()) : 0;
  auto workload = LoadWorkload(cursor.Child("workload"), gpu_count, gpu_count, scenario.seed,
                               diagnostics, CallsInMemory(cursor, parts));
  if (workload) workload->job.parts.front().name = scenario.name;
  if (cursor.Size("jobs") > 0) {
    cursor.Error(diagnostics, "jobs",
                 "stands beside workload (expected one of them: a job among jobs has its "
                 "workload in it)",
                 0);
  }
  return workload;
}

// Plans the communicators and checks what the plans need. Precondition: fabric, workload and NCCL's
// settings have no error.
CommunicatorPlanners PlanCommunicators(const ProtoCursor& cursor, const FabricGraph& fabric,
                                       LoadedWorkload& workload, NcclSettings& nccl,
                                       Scenario& scenario, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  nccl.own_algorithms = workload.own_algorithms;
  LoadNicFailover(cursor, fabric, workload, scenario.stack.nic, scenario.stack.ib, nccl,
                  diagnostics);
  CommunicatorPlanners planners = PlannersOf(fabric, workload.job.communicators, nccl);
  CheckChoices(cursor, workload, planners, diagnostics);
  if (diagnostics.error_count() == errors_before) {
    scenario.exchange_connections =
        CheckConnections(cursor, fabric, workload, nccl, planners, scenario.stack.nic, diagnostics);
    WarnOfSize(cursor, scenario.exchange_connections, diagnostics);
  }
  return planners;
}

// `fabric` and `job` are null if they have errors.
void LoadMode(const ProtoCursor& cursor, NetPlugin net, const FabricGraph* fabric, const Job* job,
              Scenario& scenario, Diagnostics& diagnostics) {
  scenario.stack.uses_flows = AsksForFlows(cursor);
  if (!scenario.stack.uses_flows) {
    CheckTransport(cursor, job, diagnostics);
    if (!FindNetworkStackTraits(scenario.stack.name)->sends_packets) {
      scenario.notes.push_back(
          fmt::format("Transport {} sends no packets: messages between servers do not cross the "
                      "fabric's links.",
                      Quote(scenario.stack.name)));
    }
    return;
  }
  CheckFlowMode(cursor, net, fabric, job, diagnostics);
  scenario.notes.emplace_back(
      "Flow mode: messages are max-min fair flows. Congestion control, windows, queues, ECN, PFC "
      "and credits, and the bandwidth of acknowledgements, are not simulated.");
}

// Hands over what was loaded without an error.
void Complete(Scenario& scenario, FabricGraph fabric, LoadedWorkload workload) {
  scenario.fabric = std::move(fabric);
  scenario.job = std::move(workload.job);
  scenario.plan = std::move(workload.plan);
  for (const ImportReport& report : workload.import_reports) AddNotes(report, scenario.notes);
  scenario.import_reports = std::move(workload.import_reports);
}

// nullptr where there are more errors than `errors_before`.
std::unique_ptr<Scenario> LoadFrom(const TextProtoFile& file, const ScenarioParts& parts,
                                   int errors_before, Diagnostics& diagnostics,
                                   std::shared_ptr<const Trace>* calls) {
  const ProtoCursor cursor(file);
  auto scenario = std::make_unique<Scenario>();
  scenario->path = file.path;
  scenario->name = LoadName(cursor, diagnostics);
  if (cursor.Has("seed")) scenario->seed = cursor.Number(diagnostics, "seed", 1, 0, UINT64_MAX);

  std::optional<FabricGraph> fabric;
  if (cursor.Has("fabric")) {
    fabric = LoadFabricOrPart(cursor.Child("fabric"), parts, diagnostics);
  } else {
    cursor.Missing(diagnostics, "fabric", R"(e.g. fabric { preset: "h100-4x8-rail-optimized" })");
  }
  NicsLoader nics(cursor, fabric ? &*fabric : nullptr, diagnostics);
  if (fabric) nics.ApplyRates(*fabric);  // what NCCL chooses depends on them
  std::optional<LoadedWorkload> workload =
      LoadWorkloadOrJobs(cursor, fabric ? &*fabric : nullptr, *scenario, parts, diagnostics);
  const NetPlugin net = LoadNet(cursor, diagnostics);
  scenario->stack.socket = LoadNetSocket(cursor, net == NetPlugin::kSocket, diagnostics);
  scenario->stack.name = LoadTransport(cursor, net, diagnostics);
  scenario->stack.nic = LoadNic(cursor, net, diagnostics);
  const bool has_aggregation = cursor.Has("nic") && cursor.Child("nic").Has("link_aggregation");
  if (!has_aggregation && net == NetPlugin::kAwsLibfabric && fabric) {
    scenario->stack.nic.link_aggregation = AwsLibfabricAggregates(*fabric);
  }
  scenario->stack.nic.is_infiniband = IsInfiniband(cursor);
  const int errors_before_nccl = diagnostics.error_count();
  NcclBlock nccl =
      LoadNccl(cursor, net, workload ? workload->job.nccl_version : std::string(), diagnostics);
  if (net == NetPlugin::kIb)
    CheckCollnet(cursor, nccl.planner, fabric ? &*fabric : nullptr, diagnostics);
  scenario->stack.nic.ib_timeout = nccl.ib_timeout;
  scenario->stack.nic.ib_retry_cnt = nccl.ib_retry_cnt;
  scenario->stack.nic_variants = nics.Load(net, scenario->stack.nic);
  scenario->stack.ib = LoadNetIb(cursor, net, nccl.planner.version, scenario->stack.nic,
                                 fabric ? &*fabric : nullptr, diagnostics);
  CommunicatorPlanners planners;
  if (fabric && workload && diagnostics.error_count() == errors_before_nccl &&
      !cursor.IsDoubtful("nccl")) {
    planners = PlanCommunicators(cursor, *fabric, *workload, nccl.planner, *scenario, diagnostics);
  }
  scenario->gpu = LoadGpu(cursor, diagnostics);
  scenario->gpu.net = net;
  ApplyCalibration(cursor, scenario->gpu, scenario->notes, diagnostics);
  FabricModels models = LoadFabricModels(cursor, fabric ? &*fabric : nullptr, net,
                                         scenario->stack.nic.mtu_bytes, diagnostics);
  scenario->models = std::move(models.attributes);
  scenario->switch_variants = std::move(models.switch_variants);
  scenario->routing = LoadRouting(cursor, fabric ? &*fabric : nullptr, diagnostics);
  scenario->watchdog = LoadWatchdog(cursor, diagnostics);
  if (workload) {
    CheckTimes(cursor, workload->job, diagnostics);
    CheckLossTolerance(cursor, workload->job, net, diagnostics);
    CheckExpertKernels(cursor, workload->job, net, diagnostics);
    scenario->restarts = LoadRestarts(cursor, fabric ? &*fabric : nullptr, *workload, diagnostics);
  }
  scenario->faults = LoadFaults(cursor, fabric ? &*fabric : nullptr,
                                workload ? &workload->job : nullptr, scenario->seed, diagnostics);
  LoadMode(cursor, net, fabric ? &*fabric : nullptr, workload ? &workload->job : nullptr, *scenario,
           diagnostics);
  if (diagnostics.error_count() > errors_before || !fabric || !workload) return nullptr;

  if (!scenario->stack.uses_flows) WarnOfDeadlock(cursor, *fabric, scenario->notes, diagnostics);
  if (calls != nullptr) *calls = std::move(workload->trace);
  Complete(*scenario, std::move(*fabric), std::move(*workload));
  scenario->nccl = nccl.planner;
  scenario->planners = std::move(planners);
  return scenario;
}

}  // namespace

std::unique_ptr<Scenario> LoadScenario(const std::string& path,
                                       const std::vector<std::string>& sets,
                                       Diagnostics& diagnostics,
                                       std::shared_ptr<const Trace>* calls) {
  const int errors_before = diagnostics.error_count();
  const auto file = ReadScenarioText(path, sets, diagnostics);
  return file ? LoadFrom(*file, {}, errors_before, diagnostics, calls) : nullptr;
}

std::unique_ptr<TextProtoFile> ReadScenarioText(const std::string& path,
                                                const std::vector<std::string>& sets,
                                                Diagnostics& diagnostics) {
  return LoadTextProto(path, protos::Scenario(), sets, diagnostics,
                       {.fields = {"railyard.protos.Workload.plan"}, .prefix = {}});
}

std::unique_ptr<Scenario> LoadScenario(const TextProtoFile& file, Diagnostics& diagnostics,
                                       const ScenarioParts& parts) {
  return LoadFrom(file, parts, diagnostics.error_count(), diagnostics, nullptr);
}

TextProtoFile EmptyScenario(const std::string& name) {
  TextProtoFile file;
  file.path = name;
  file.is_text = false;
  file.message = std::make_unique<protos::Scenario>();
  return file;
}

}  // namespace railyard
