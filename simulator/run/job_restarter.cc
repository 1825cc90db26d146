// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/job_restarter.h"

#include <algorithm>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/run/job_aborter.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// For packets of the old processes, at most.
constexpr int64_t kPacketsGonePs = 600 * kPsPerSecond;
// Between looks whether packets of the old processes are still under way.
constexpr int64_t kLookPs = kPsPerMs;

}  // namespace

JobRestarter::JobRestarter(const Scenario& scenario, ReplayEngine& replay,
                           FabricSimulatorImpl& engine, PairLedger& pairs, TrafficLedger& traffic)
    : scenario_(scenario), replay_(replay), engine_(engine), pairs_(pairs), traffic_(traffic) {
  const Job& job = scenario.job;
  for (uint32_t rank = 0; rank < job.rank_count; ++rank) {
    each_of_rank_.push_back(
        static_cast<uint32_t>(job.operations[rank].size() / scenario.restart.rounds));
  }
  first_of_rank_.resize(job.rank_count);
}

std::vector<uint32_t> JobRestarter::LastCheckpoint() {
  const RestartSettings& settings = scenario_.restart;
  std::vector<uint32_t> first(each_of_rank_.size());
  if (settings.checkpoint_every == 0) return first;
  // A rank that has begun a round has saved the checkpoint before it.
  uint64_t round = settings.rounds;
  for (uint32_t rank = 0; rank < first.size(); ++rank) {
    const uint32_t begun = replay_.begun_of_rank(rank);
    round = std::min<uint64_t>(round, begun == 0 ? 0 : (begun - 1) / each_of_rank_[rank]);
  }
  round -= round % settings.checkpoint_every;
  for (uint32_t rank = 0; rank < first.size(); ++rank) {
    first[rank] = static_cast<uint32_t>(round * each_of_rank_[rank]);
  }
  return first;
}

bool JobRestarter::OnJobFailed(const std::string& why) {
  if (result_.restarts == scenario_.restart.restarts_max) return false;
  const int64_t now_ps = engine_.NowPs();
  std::vector<uint32_t> first = LastCheckpoint();
  // Where nothing was saved since, all since the last restart is lost.
  if (first != first_of_rank_) {
    progress_ps_ = 0;
    for (uint32_t rank = 0; rank < first.size(); ++rank) {
      const JobOperation& operation = scenario_.job.operations[rank][first[rank]];
      // The checkpoint is saved, then the round's computation begins.
      progress_ps_ =
          std::max(progress_ps_, replay_.times()[operation.collective].last_start_ps -
                                     (operation.compute_before_ps - scenario_.restart.save_ps));
    }
    first_of_rank_ = std::move(first);
  }
  result_.rework_ps += now_ps - progress_ps_;
  const int64_t gone_ps = AllRanksGonePs(scenario_.restart.detection, now_ps, replay_, 0);
  result_.detection_ps += gone_ps - now_ps;
  result_.requeue_ps += scenario_.restart.requeue_ps;
  result_.load_ps += scenario_.restart.load_ps;
  ++result_.restarts;
  result_.last_failure = why;
  replay_.Halt();
  const int64_t back_ps = gone_ps + scenario_.restart.requeue_ps + scenario_.restart.load_ps;
  ns3::Simulator::Schedule(ns3::PicoSeconds(back_ps - now_ps), &JobRestarter::TryToRestart, this);
  return true;
}

void JobRestarter::TryToRestart() {
  if (!replay_.IsGone()) {
    if ((looks_ps_ += kLookPs) > kPacketsGonePs) {
      replay_.Abort(0,
                    fmt::format("packets of the job that failed are held in the fabric for longer "
                                "than {}: {}",
                                FormatDuration(kPacketsGonePs), result_.last_failure));
      return;
    }
    result_.requeue_ps += kLookPs;
    ns3::Simulator::Schedule(ns3::PicoSeconds(kLookPs), &JobRestarter::TryToRestart, this);
    return;
  }
  looks_ps_ = 0;
  progress_ps_ = engine_.NowPs();
  const bool is_from_checkpoint = first_of_rank_.front() > 0;
  replay_.RestartAt(first_of_rank_, each_of_rank_,
                    is_from_checkpoint ? scenario_.restart.save_ps : 0);
}

void JobRestarter::OnConnectionsGone() {
  pairs_.Add(scenario_.fabric, replay_.executor());
  traffic_.Add(scenario_.job, replay_.executor());
}

}  // namespace railyard
