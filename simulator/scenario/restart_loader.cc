// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/restart_loader.h"

#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/scenario.pb.h"
#include "simulator/units/units.h"

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

// Faults that could not go on over a restart.
void CheckFaults(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  for (int i = 0; i < scenario.Size("faults"); ++i) {
    const ProtoCursor fault = scenario.Child("faults", i);
    const auto& message = static_cast<const protos::Fault&>(fault.message());
    if (message.kind() == protos::Fault::BACKGROUND_LOAD) {
      fault.Error(diagnostics, "kind",
                  "BACKGROUND_LOAD cannot go on over a restart (expected another kind, or no "
                  "restart)");
    }
    if (message.when().has_number()) {
      fault.Child("when").Error(diagnostics, "number",
                                "names a collective that a restart may repeat (expected a time)");
    }
  }
}

void AddSaves(const RestartSettings& settings, Job& job) {
  std::vector<bool> is_done(job.operations.program_count());
  for (uint32_t rank = 0; rank < job.rank_count; ++rank) {
    const uint32_t program = job.operations.program_of_rank(rank);
    if (is_done[program]) continue;
    is_done[program] = true;
    std::vector<JobOperation>& operations = job.operations[rank];
    const size_t each = operations.size() / settings.rounds;
    for (uint64_t round = settings.checkpoint_every; round < settings.rounds;
         round += settings.checkpoint_every) {
      operations[round * each].compute_before_ps += settings.save_ps;
    }
  }
}

}  // namespace

RestartSettings LoadRestart(const ProtoCursor& scenario, LoadedWorkload& workload,
                            Diagnostics& diagnostics) {
  RestartSettings settings;
  if (!scenario.Has("restart")) return settings;
  const ProtoCursor cursor = scenario.Child("restart");
  const int errors_before = diagnostics.error_count();
  if (!scenario.Has("workload")) {
    scenario.Error(diagnostics, "restart",
                   "is of one job alone (expected workload in place of jobs, or no restart)");
    return settings;
  }
  const ProtoCursor of_workload = scenario.Child("workload");
  if (!of_workload.Has("program") || of_workload.Has("operations_max")) {
    scenario.Error(diagnostics, "restart",
                   "needs the rounds of a program (expected workload.program, and all of it)");
    return settings;
  }
  settings.restarts = true;
  settings.rounds = of_workload.Child("program").Number(diagnostics, "repeat", 1, 1, UINT32_MAX);
  settings.checkpoint_every = cursor.Number(diagnostics, "checkpoint_every", 0, 1, UINT32_MAX);
  settings.restarts_max = static_cast<uint32_t>(
      cursor.Number(diagnostics, "restarts_max", kRestartsMaxDefault, 1, 10'000));
  settings.save_ps = LoadCost(cursor, "save", diagnostics);
  settings.load_ps = LoadCost(cursor, "load", diagnostics);
  settings.requeue_ps = LoadCost(cursor, "requeue", diagnostics);
  const auto& message = static_cast<const protos::Restart&>(cursor.message());
  if (message.detection() == protos::Restart::WATCHDOG) {
    settings.detection = RestartSettings::Detection::kWatchdog;
  }
  if (cursor.Has("save") && settings.checkpoint_every == 0) {
    cursor.Error(diagnostics, "save", "has no effect without checkpoint_every");
  }
  if (settings.checkpoint_every >= settings.rounds) {
    cursor.Error(
        diagnostics, "checkpoint_every",
        fmt::format("{} is beyond the program's last round (expected less than its repeat, "
                    "{})",
                    settings.checkpoint_every, settings.rounds));
  }
  CheckFaults(scenario, diagnostics);
  if (diagnostics.error_count() > errors_before) return settings;
  if (settings.checkpoint_every > 0) AddSaves(settings, workload.job);
  return settings;
}

}  // namespace railyard
