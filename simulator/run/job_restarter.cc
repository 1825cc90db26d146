// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/job_restarter.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/run/job_aborter.h"
#include "simulator/units/time_end.h"
#include "workloads/job/job_parts.h"

namespace railyard {

JobRestarter::JobRestarter(const RestartSettings& settings, PartIndex part, const Run& run)
    : settings_(settings),
      part_(part),
      run_(run),
      progress_ps_(run.job.parts[part].start_ps),
      spares_(settings.spare_servers) {}

int64_t JobRestarter::SavedPs(uint64_t checkpoint) const {
  const CheckpointPlaces& places = settings_.checkpoints;
  int64_t saved_ps = progress_ps_;
  std::vector<int64_t> ends_ps;
  for (const GlobalRank rank : run_.job.parts[part_].global_ranks) {
    const std::vector<uint32_t>& of_rank = places[run_.job.operations.program_of_rank(rank)];
    if (of_rank.empty()) continue;
    const std::vector<JobOperation>& operations = run_.job.operations[rank];
    const uint32_t first = checkpoint == 0 ? 0 : of_rank[checkpoint - 1];
    const uint32_t end = of_rank[checkpoint];
    std::map<uint32_t, int64_t> stream_ps;
    ends_ps.assign(end - first, progress_ps_);
    for (uint32_t i = first; i < end; ++i) {
      const JobOperation& operation = operations[i];
      int64_t& of_stream_ps = stream_ps.try_emplace(operation.stream, progress_ps_).first->second;
      if (operation.is_compute()) {
        const bool waits = operation.after != JobOperation::kNone && operation.after >= first;
        of_stream_ps = SumPs(std::max(of_stream_ps, waits ? ends_ps[operation.after - first] : 0),
                             operation.compute_before_ps);
      } else {
        const CollectiveIndex collective = run_.job.CollectiveOf(rank, operation);
        of_stream_ps = run_.replay.ledger().times()[collective].last_end_ps;
        if (of_stream_ps == kNeverPs) return kNeverPs;
      }
      ends_ps[i - first] = of_stream_ps;
    }
    saved_ps = std::max(saved_ps, ends_ps.back());
  }
  return saved_ps;
}

void JobRestarter::FindLastCheckpoint() {
  while (checkpoint_ < settings_.checkpoint_count) {
    const int64_t saved_ps = SavedPs(checkpoint_);
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
  const int64_t gone_ps = AllRanksGonePs(settings_.detection, *failed_ps_, run_.replay, part_);
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
  const ReplayEngine::SwappedRanks swapped = MoveToSpares();
  std::vector<uint32_t> first_of_rank(run_.job.rank_count);
  for (GlobalRank rank{0}; rank < run_.job.rank_count && checkpoint_ > 0; ++rank) {
    const auto& places = settings_.checkpoints[run_.job.operations.program_of_rank(rank)];
    if (!places.empty()) first_of_rank[rank] = places[checkpoint_ - 1];
  }
  run_.replay.RestartAt(part_, first_of_rank, swapped);
  run_.load.GoOn();
}

ReplayEngine::SwappedRanks JobRestarter::MoveToSpares() {
  ReplayEngine::SwappedRanks swapped;
  if (spares_.empty()) return swapped;
  const FabricGraph& fabric = run_.fabric;
  const std::set<ServerIndex> broken = run_.faults.BrokenServers();
  // GPUs by server, in order.
  std::map<ServerIndex, std::vector<GpuIndex>> gpus_of_server;
  for (GpuIndex gpu{0}; gpu < fabric.gpus().size(); ++gpu) {
    gpus_of_server[fabric.device(fabric.gpus()[gpu]).server].push_back(gpu);
  }
  const auto has_rank = [this](GpuIndex gpu) {
    return gpu < run_.job.rank_count && !run_.job.operations[RankOn(gpu)].empty();
  };
  for (const ServerIndex server : broken) {
    const std::vector<GpuIndex>& gpus = gpus_of_server[server];
    std::vector<size_t> places;  // of the job's ranks in the server
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (has_rank(gpus[i]) && run_.replay.calls().PartOf(RankOn(gpus[i])) == part_)
        places.push_back(i);
    }
    // Another job may have come first.
    const auto spare = std::ranges::find_if(spares_, [&](ServerIndex candidate) {
      return !broken.contains(candidate) && std::ranges::none_of(places, [&](size_t place) {
        return has_rank(gpus_of_server[candidate][place]);
      });
    });
    if (places.empty() || spare == spares_.end()) continue;
    for (const size_t place : places) {
      swapped.emplace_back(RankOn(gpus[place]), RankOn(gpus_of_server[*spare][place]));
      SwapRanks(swapped.back().first, swapped.back().second, run_.job);
    }
    *spare = server;
    ++result_.servers_replaced;
  }
  return swapped;
}

}  // namespace railyard
