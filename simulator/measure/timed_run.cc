// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/timed_run.h"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "railyard/result.h"
#include "railyard/run.h"
#include "simulator/processes/forked_copies.h"
#include "simulator/processes/interruption.h"

namespace railyard {
namespace {

TimedRun Failed(TimedEnd end, std::string why) {
  TimedRun run;
  run.end = end;
  run.error = std::move(why);
  return run;
}

TimedRun RunHere(const ScenarioMaker& maker) {
  Diagnostics findings;
  const auto scenario = maker(findings);
  if (!scenario) return Failed(TimedEnd::kInputWrong, findings.ToString());
  const Result result = Run(*scenario, {.baseline = false});
  if (result.status != RunStatus::kCompleted) {
    return Failed(
        result.status == RunStatus::kJobAborted ? TimedEnd::kJobAborted : TimedEnd::kStalled,
        result.status_detail);
  }
  int64_t first_start_ps = INT64_MAX;
  int64_t last_end_ps = 0;
  for (const CollectiveResult& collective : result.collectives) {
    first_start_ps = std::min(first_start_ps, collective.first_start_ps);
    last_end_ps = std::max(last_end_ps, collective.last_end_ps);
  }
  TimedRun run;
  run.time_ps = last_end_ps - first_start_ps;
  run.packet_hops = result.packet_hops;
  run.replayed = result.collectives.front().replayed;
  return run;
}

TimedRun OutcomeHere(const ScenarioMaker& maker) {
  try {
    return RunHere(maker);
  } catch (const std::bad_alloc&) {
    return Failed(TimedEnd::kEnvironmentFailed, "not enough memory");
  } catch (const std::exception& error) {
    return Failed(TimedEnd::kEnvironmentFailed, error.what());
  }
}

void Put(const TimedRun& run, Handover& to) {
  to.Put(run.end);
  to.Put(run.time_ps);
  to.Put(run.packet_hops);
  to.Put(run.error);
  to.Put(run.replayed);
}

bool Take(Handover& from, TimedRun& run) {
  return from.Take(run.end) && from.Take(run.time_ps) && from.Take(run.packet_hops) &&
         from.Take(run.error) && from.Take(run.replayed);
}

TimedRun OutcomeOf(const EndedCopy& copy) {
  TimedRun run;
  if (copy.status == 0 && Take(copy.handover, run)) return run;
  return Failed(TimedEnd::kEnvironmentFailed,
                copy.status > 128 ? "the run was killed by " + SignalName(copy.status - 128)
                                  : "the run ended without a result");
}

}  // namespace

std::vector<TimedRun> RunTimed(const std::vector<ScenarioMaker>& makers,
                               const std::function<void(size_t, const TimedRun&)>& done) {
  std::vector<TimedRun> runs(makers.size());
  RunInCopies(
      makers.size(), std::max(1u, std::thread::hardware_concurrency()),
      [&makers](size_t index, Handover& to) { Put(OutcomeHere(makers[index]), to); },
      [&](const EndedCopy& copy) {
        runs[copy.index] = OutcomeOf(copy);
        done(copy.index, runs[copy.index]);
      });
  return runs;
}

}  // namespace railyard
