// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/job_restarter.h"

#include <utility>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/run/checkpoint_times.h"
#include "simulator/run/job_aborter.h"
#include "simulator/run/spare_moves.h"

namespace railyard {

JobRestarter::JobRestarter(const RestartSettings& settings, PartIndex part, const Run& run)
    : settings_(settings),
      part_(part),
      run_(run),
      progress_ps_(run.job.parts[part].start_ps),
      spares_(settings.spare_servers) {}

void JobRestarter::FindLastCheckpoint() {
  const CheckpointedPart part{.job = run_.job,
                              .part = part_,
                              .places = settings_.checkpoints,
                              .times = run_.replay.ledger().times()};
  while (checkpoint_ < settings_.checkpoint_count) {
    const int64_t saved_ps = SavedPs(part, checkpoint_, progress_ps_);
    if (saved_ps > run_.engine.NowPs()) return;
    progress_ps_ = saved_ps;
    ++checkpoint_;
  }
}

bool JobRestarter::OnJobFailed(const std::string& why) {
  if (failed_ps_) return true;
  if (result_.restarts == settings_.restarts_max) return false;
  failed_ps_ = run_.engine.NowPs();
  why_ = why;
  FindLastCheckpoint();
  TryToEnd();
  return true;
}

// Without a launcher a rank may begin another collective meanwhile, and hang in that.
void JobRestarter::TryToEnd() {
  const int64_t now_ps = run_.engine.NowPs();
  const int64_t gone_ps =
      AllRanksGonePs(settings_.detection, *failed_ps_, run_.replay.streams().LastBeginPs(part_));
  if (gone_ps > now_ps) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(gone_ps - now_ps)),
                             &JobRestarter::TryToEnd, this);
    return;
  }
  result_.rework_ps += *failed_ps_ - progress_ps_;
  result_.detection_ps += now_ps - *failed_ps_;
  result_.requeue_ps += settings_.requeue_ps;
  result_.load_ps += settings_.load_ps;
  ++result_.restarts;
  result_.last_failure = why_;
  run_.replay.Halt(part_);
  ns3::Simulator::Schedule(
      ns3::PicoSeconds(static_cast<uint64_t>(settings_.requeue_ps + settings_.load_ps)),
      &JobRestarter::Restart, this);
}

void JobRestarter::Restart() {
  failed_ps_.reset();
  progress_ps_ = run_.engine.NowPs();
  const ReplayEngine::SwappedRanks swapped = MoveRanks();
  std::vector<uint32_t> first_of_rank(run_.job.rank_count);
  for (GlobalRank rank{0}; rank < run_.job.rank_count && checkpoint_ > 0; ++rank) {
    const auto& places = settings_.checkpoints[run_.job.operations.program_of_rank(rank)];
    if (!places.empty()) first_of_rank[rank] = places[checkpoint_ - 1];
  }
  run_.replay.RestartAt(part_, first_of_rank, swapped);
  run_.load.GoOn();
}

ReplayEngine::SwappedRanks JobRestarter::MoveRanks() {
  if (spares_.empty()) return {};
  const FabricGraph& fabric = run_.fabric;
  GpusOfServers gpus_of_server;
  for (GpuIndex gpu{0}; gpu < fabric.gpus().size(); ++gpu) {
    gpus_of_server[fabric.device(fabric.gpus()[gpu]).server].push_back(gpu);
  }
  SpareMoves moves = MoveToSpares(std::move(gpus_of_server), run_.faults.BrokenServers(), part_,
                                  spares_, run_.job);
  result_.servers_replaced += moves.servers_replaced;
  return std::move(moves.swapped);
}

}  // namespace railyard
