// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/restart_loader.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/fault_targets.h"
#include "simulator/scenario/scenario.pb.h"
#include "simulator/units/units.h"
#include "workloads/job_parts.h"

namespace railyard {
namespace {

constexpr uint32_t kRestartsMaxDefault = 100;
constexpr int64_t kLongestPs = 24 * 3600 * kPsPerSecond;

int64_t LoadCost(const ProtoCursor& cursor, const char* field, Diagnostics& diagnostics) {
  const int64_t cost_ps = cursor.DurationPs(diagnostics, field, 0);
  if (cost_ps <= kLongestPs) return cost_ps;
  cursor.Error(
      diagnostics, field,
      fmt::format("{} is out of range (expected at most 24 h)", Quote(cursor.Text(field, ""))));
  return 0;
}

// Puts the checkpoints into the job.
void LoadCheckpoints(const ProtoCursor& cursor, RestartSettings& settings, Job& job,
                     Diagnostics& diagnostics) {
  if (!cursor.Has("checkpoint_every")) {
    if (cursor.Has("save")) {
      cursor.Error(diagnostics, "save", "has no effect without checkpoint_every");
    }
    return;
  }
  const int errors_before = diagnostics.error_count();
  const uint64_t every = cursor.Number(diagnostics, "checkpoint_every", 1, 1, UINT32_MAX);
  const IterationBegins iterations = FindIterations(job, 0);
  if (iterations.count == 1) {
    cursor.Error(diagnostics, "checkpoint_every",
                 "the job has one iteration, as far as can be told (expected a plan or a program "
                 "that repeats, a log whose calls do throughout, or no checkpoints)");
  } else if (every >= iterations.count) {
    cursor.Error(diagnostics, "checkpoint_every",
                 fmt::format("{} is beyond the job's last iteration (expected less than {})", every,
                             iterations.count));
  }
  if (diagnostics.error_count() > errors_before) return;
  settings.checkpoint_count = (iterations.count - 1) / every;
  settings.checkpoints = AddCheckpoints(iterations, every, settings.save_ps, job);
  if (const auto across = CollectiveAcross(settings.checkpoints, job)) {
    cursor.Error(diagnostics, "checkpoint_every",
                 fmt::format("collective {} is before a checkpoint on some ranks and after it on "
                             "others (expected iterations that all ranks begin together)",
                             *across));
  }
}

struct Server {
  std::string name;
  size_t gpus = 0;
  bool has_ranks = false;
};

std::map<int32_t, Server> ServersOf(const FabricGraph& fabric, const Job& job) {
  std::map<int32_t, Server> servers;
  for (uint32_t gpu = 0; gpu < fabric.gpus().size(); ++gpu) {
    const Device& device = fabric.device(fabric.gpus()[gpu]);
    Server& server = servers[device.server];
    server.name = device.name.substr(0, device.name.find('/'));
    ++server.gpus;
    server.has_ranks |= gpu < job.rank_count && !job.operations[gpu].empty();
  }
  return servers;
}

std::vector<int32_t> SpareServers(const ProtoCursor& cursor, const FabricGraph& fabric,
                                  const Job& job, Diagnostics& diagnostics) {
  const std::map<int32_t, Server> servers = ServersOf(fabric, job);
  const auto used = std::find_if(servers.begin(), servers.end(),
                                 [](const auto& entry) { return entry.second.has_ranks; });
  const size_t gpus = used->second.gpus;
  const auto& message = static_cast<const protos::Restart&>(cursor.message());
  std::vector<int32_t> spares;
  for (int i = 0; i < message.spare_servers_size(); ++i) {
    const std::string& pattern = message.spare_servers(i);
    bool fits = false;
    for (const auto& [id, server] : servers) {
      if (!FitsPattern(pattern, server.name)) continue;
      fits = true;
      if (server.has_ranks) {
        cursor.Error(diagnostics, "spare_servers",
                     fmt::format("{} has ranks of the job (expected servers without; "
                                 "workload.program.ranks and plans say how many GPUs it is on)",
                                 server.name),
                     i);
        return {};
      }
      if (server.gpus != gpus) {
        cursor.Error(diagnostics, "spare_servers",
                     fmt::format("{} has {} GPUs, {} {} (expected equally many)", server.name,
                                 server.gpus, used->second.name, gpus),
                     i);
        return {};
      }
      if (std::find(spares.begin(), spares.end(), id) == spares.end()) spares.push_back(id);
    }
    if (fits) continue;
    cursor.Error(diagnostics, "spare_servers",
                 fmt::format("{} is no server with GPUs (expected e.g. {})", Quote(pattern),
                             Quote(servers.rbegin()->second.name)),
                 i);
  }
  return spares;
}

}  // namespace

RestartSettings LoadRestart(const ProtoCursor& scenario, const FabricGraph* fabric,
                            LoadedWorkload& workload, Diagnostics& diagnostics) {
  RestartSettings settings;
  if (!scenario.Has("restart")) return settings;
  const ProtoCursor cursor = scenario.Child("restart");
  if (!scenario.Has("workload")) {
    scenario.Error(diagnostics, "restart",
                   "is of one job alone (expected workload in place of jobs, or no restart)");
    return settings;
  }
  settings.restarts = true;
  settings.restarts_max = static_cast<uint32_t>(
      cursor.Number(diagnostics, "restarts_max", kRestartsMaxDefault, 1, 10'000));
  settings.save_ps = LoadCost(cursor, "save", diagnostics);
  settings.load_ps = LoadCost(cursor, "load", diagnostics);
  settings.requeue_ps = LoadCost(cursor, "requeue", diagnostics);
  const auto& message = static_cast<const protos::Restart&>(cursor.message());
  if (message.detection() == protos::Restart::WATCHDOG) {
    settings.detection = RestartSettings::Detection::kWatchdog;
  }
  if (fabric != nullptr && cursor.Size("spare_servers") > 0) {
    if (scenario.Has("nic_failover")) {
      cursor.Error(diagnostics, "spare_servers",
                   "stands beside nic_failover, which names NICs of servers that ranks would leave "
                   "(expected one of them)",
                   0);
    }
    settings.spare_servers = SpareServers(cursor, *fabric, workload.job, diagnostics);
    GrowTo(static_cast<uint32_t>(fabric->gpus().size()), workload.job);
  }
  LoadCheckpoints(cursor, settings, workload.job, diagnostics);
  return settings;
}

}  // namespace railyard
