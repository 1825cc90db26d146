// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/restart_loader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/check/time_check.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"
#include "workloads/job/job_parts.h"
#include "workloads/layout/gpu_of_rank.h"

namespace railyard {
namespace {

constexpr uint32_t kRestartsMaxDefault = 100;
constexpr int64_t kLongestPs = int64_t{24} * 3600 * kPsPerSecond;

int64_t LoadCost(const ProtoCursor& cursor, const char* field, Diagnostics& diagnostics) {
  const int64_t cost_ps = cursor.DurationPs(diagnostics, field, 0);
  if (cost_ps <= kLongestPs) return cost_ps;
  cursor.Error(
      diagnostics, field,
      fmt::format("{} is out of range (expected at most 24 h)", Quote(cursor.Text(field, ""))));
  return 0;
}

// Loads the fields that do not depend on the job.
RestartSettings LoadCosts(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  RestartSettings settings;
  settings.restarts = true;
  settings.restarts_max = static_cast<uint32_t>(
      cursor.Number(diagnostics, "restarts_max", kRestartsMaxDefault, 1, 10'000));
  settings.save_ps = LoadCost(cursor, "save", diagnostics);
  settings.load_ps = LoadCost(cursor, "load", diagnostics);
  settings.requeue_ps = LoadCost(cursor, "requeue", diagnostics);
  const auto& message = cursor.As<protos::Restart>();
  if (message.detection() == protos::Restart::WATCHDOG) {
    settings.detection = RestartSettings::Detection::kWatchdog;
  }
  if (cursor.Has("save") && !cursor.Has("checkpoint_every")) {
    cursor.Error(diagnostics, "save", "has no effect without checkpoint_every");
  }
  return settings;
}

std::string NameOf(const Job& job, PartIndex part) {
  return job.parts.size() == 1 ? "the job" : "job " + Quote(job.parts[part].name);
}

// Puts the checkpoints of a part into its programs.
void LoadCheckpoints(const ProtoCursor& cursor, PartIndex part, RestartSettings& settings, Job& job,
                     Diagnostics& diagnostics) {
  if (!cursor.Has("checkpoint_every")) return;
  const int errors_before = diagnostics.error_count();
  const uint64_t every = cursor.Number(diagnostics, "checkpoint_every", 1, 1, UINT32_MAX);
  const IterationBegins iterations = FindIterations(job, part);
  if (iterations.count == 1) {
    cursor.Error(
        diagnostics, "checkpoint_every",
        NameOf(job, part) +
            " has one iteration, as far as its program shows (expected a plan or a program that "
            "repeats, a log whose calls do throughout, or no checkpoints)");
  } else if (every >= iterations.count) {
    cursor.Error(diagnostics, "checkpoint_every",
                 fmt::format("{} is beyond {}'s last iteration (expected less than {})", every,
                             NameOf(job, part), iterations.count));
  }
  if (diagnostics.error_count() > errors_before) return;
  settings.checkpoint_count = (iterations.count - 1) / every;
  const bool ends_in_time = LeastTimePs(job, part) <= kTimeEndPs;
  settings.checkpoints = AddCheckpoints(iterations, every, settings.save_ps, job);
  if (ends_in_time && LeastTimePs(job, part) > kTimeEndPs) {
    cursor.Error(diagnostics, "save",
                 fmt::format("{} checkpoints of {} take longer than simulated time lasts (expected "
                             "less than {} with what is computed)",
                             settings.checkpoint_count, FormatDuration(settings.save_ps),
                             FormatDuration(kTimeEndPs)));
  }
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
  std::set<PartIndex> parts;  // of the job, that have ranks there
};

std::map<ServerIndex, Server> ServersOf(const FabricGraph& fabric, const Job& job) {
  std::map<ServerIndex, Server> servers;
  const std::vector<PartIndex> part_of_rank = job.PartsOfRanks();
  for (GpuIndex gpu{0}; gpu < fabric.gpus().size(); ++gpu) {
    const Device& device = fabric.device(fabric.gpus()[gpu]);
    Server& server = servers[device.server];
    server.name = device.name.substr(0, device.name.find('/'));
    ++server.gpus;
    if (gpu < job.rank_count && !job.operations[RankOn(gpu)].empty())
      server.parts.insert(part_of_rank[gpu]);
  }
  return servers;
}

std::vector<ServerIndex> SpareServers(const ProtoCursor& cursor, const FabricGraph& fabric,
                                      const Job& job, PartIndex part, Diagnostics& diagnostics) {
  const std::map<ServerIndex, Server> servers = ServersOf(fabric, job);
  const auto used = std::find_if(servers.begin(), servers.end(), [part](const auto& entry) {
    return entry.second.parts.contains(part);
  });
  const size_t gpus = used->second.gpus;
  const auto& message = cursor.As<protos::Restart>();
  std::vector<ServerIndex> spares;
  for (int i = 0; i < message.spare_servers_size(); ++i) {
    const std::string& pattern = message.spare_servers(i);
    bool fits = false;
    for (const auto& [id, server] : servers) {
      if (!FitsPattern(pattern, server.name)) continue;
      fits = true;
      if (!server.parts.empty()) {
        cursor.Error(diagnostics, "spare_servers",
                     fmt::format("{} has ranks of {} (expected servers without; "
                                 "workload.program.ranks, plans and placements say which GPUs a "
                                 "job is on)",
                                 server.name, NameOf(job, *server.parts.begin())),
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

std::vector<RestartSettings> LoadRestarts(const ProtoCursor& scenario, const FabricGraph* fabric,
                                          LoadedWorkload& workload, Diagnostics& diagnostics) {
  Job& job = workload.job;
  std::vector<RestartSettings> restarts(job.parts.size());
  const int errors_before = diagnostics.error_count();
  std::optional<RestartSettings> common;
  if (scenario.Has("restart")) common = LoadCosts(scenario.Child("restart"), diagnostics);
  bool is_of_some = false;  // `common`
  for (PartIndex part{}; part < restarts.size() && diagnostics.error_count() == errors_before;
       ++part) {
    RestartSettings& settings = restarts[part];
    std::optional<ProtoCursor> cursor;
    if (scenario.Size("jobs") > 0) cursor = scenario.Child("jobs", static_cast<int>(part));
    if (cursor && cursor->Has("restart")) {
      cursor = cursor->Child("restart");
      settings = LoadCosts(*cursor, diagnostics);
    } else if (common) {
      cursor = scenario.Child("restart");
      settings = *common;
      is_of_some = true;
    } else {
      continue;
    }
    if (fabric != nullptr && cursor->Size("spare_servers") > 0) {
      if (scenario.Has("nic_failover") && scenario.Child("nic_failover").Size("unusable") > 0) {
        cursor->Error(diagnostics, "spare_servers",
                      "stands beside nic_failover, which names NICs of servers that ranks would "
                      "leave (expected one of them)",
                      0);
      }
      settings.spare_servers = SpareServers(*cursor, *fabric, job, part, diagnostics);
      GrowTo(static_cast<uint32_t>(fabric->gpus().size()), job);
    }
    LoadCheckpoints(*cursor, part, settings, job, diagnostics);
  }
  if (common && !is_of_some && diagnostics.error_count() == errors_before) {
    scenario.Error(diagnostics, "restart",
                   "has no effect, for every job has its own (expected it in some jobs alone, or "
                   "here alone)");
  }
  return restarts;
}

}  // namespace railyard
