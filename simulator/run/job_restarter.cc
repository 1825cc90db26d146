// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/job_restarter.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/run/job_aborter.h"
#include "simulator/units/units.h"
#include "workloads/job_parts.h"

namespace railyard {
namespace {

// For packets of the old processes, at most.
constexpr int64_t kPacketsGonePs = 600 * kPsPerSecond;
// Between looks whether packets of the old processes are still under way.
constexpr int64_t kLookPs = kPsPerMs;

}  // namespace

JobRestarter::JobRestarter(const Scenario& scenario, Job& job, ReplayEngine& replay,
                           FabricSimulatorImpl& engine, const FaultInjector& faults,
                           BackgroundLoad& load, PairLedger& pairs, TrafficLedger& traffic)
    : scenario_(scenario),
      job_(job),
      replay_(replay),
      engine_(engine),
      faults_(faults),
      load_(load),
      pairs_(pairs),
      traffic_(traffic),
      spares_(scenario.restart.spare_servers) {}

int64_t JobRestarter::SavedPs(uint64_t checkpoint) const {
  const CheckpointPlaces& places = scenario_.restart.checkpoints;
  int64_t saved_ps = progress_ps_;
  std::vector<int64_t> ends_ps;
  for (uint32_t program = 0; program < places.size(); ++program) {
    if (places[program].empty()) continue;
    const std::vector<JobOperation>& operations = job_.operations.program(program);
    const uint32_t first = checkpoint == 0 ? 0 : places[program][checkpoint - 1];
    const uint32_t end = places[program][checkpoint];
    std::map<uint32_t, int64_t> stream_ps;
    ends_ps.assign(end - first, progress_ps_);
    for (uint32_t i = first; i < end; ++i) {
      const JobOperation& operation = operations[i];
      int64_t& of_stream_ps = stream_ps.try_emplace(operation.stream, progress_ps_).first->second;
      if (operation.is_compute()) {
        const bool waits = operation.after != JobOperation::kNone && operation.after >= first;
        of_stream_ps = std::max(of_stream_ps, waits ? ends_ps[operation.after - first] : 0) +
                       operation.compute_before_ps;
      } else {
        of_stream_ps = replay_.times()[operation.collective].last_end_ps;
        if (of_stream_ps == kNeverPs) return kNeverPs;
      }
      ends_ps[i - first] = of_stream_ps;
    }
    saved_ps = std::max(saved_ps, ends_ps.back());
  }
  return saved_ps;
}

void JobRestarter::FindLastCheckpoint() {
  while (checkpoint_ < scenario_.restart.checkpoint_count) {
    const int64_t saved_ps = SavedPs(checkpoint_);
    if (saved_ps > engine_.NowPs()) return;
    progress_ps_ = saved_ps;
    ++checkpoint_;
  }
}

bool JobRestarter::OnJobFailed(const std::string& why) {
  if (result_.restarts == scenario_.restart.restarts_max) return false;
  const int64_t now_ps = engine_.NowPs();
  FindLastCheckpoint();
  result_.rework_ps += now_ps - progress_ps_;
  const int64_t gone_ps = AllRanksGonePs(scenario_.restart.detection, now_ps, replay_, 0);
  result_.detection_ps += gone_ps - now_ps;
  result_.requeue_ps += scenario_.restart.requeue_ps;
  result_.load_ps += scenario_.restart.load_ps;
  ++result_.restarts;
  result_.last_failure = why;
  replay_.Halt();
  load_.Halt();
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
  const bool moved = MoveToSpares();
  std::vector<uint32_t> first_of_rank(job_.rank_count);
  for (uint32_t rank = 0; rank < job_.rank_count && checkpoint_ > 0; ++rank) {
    const auto& places = scenario_.restart.checkpoints[job_.operations.program_of_rank(rank)];
    if (!places.empty()) first_of_rank[rank] = places[checkpoint_ - 1];
  }
  replay_.RestartAt(first_of_rank, moved);
  load_.Resume(replay_.executor().rdma());
  replay_.executor().SetForeignListener(load_);
}

bool JobRestarter::MoveToSpares() {
  if (spares_.empty()) return false;
  const FabricGraph& fabric = scenario_.fabric;
  const std::set<int32_t> broken = faults_.BrokenServers();
  // GPUs by server, in order.
  std::map<int32_t, std::vector<uint32_t>> gpus_of_server;
  for (uint32_t gpu = 0; gpu < fabric.gpus().size(); ++gpu) {
    gpus_of_server[fabric.device(fabric.gpus()[gpu]).server].push_back(gpu);
  }
  bool moved = false;
  for (const int32_t server : broken) {
    const std::vector<uint32_t>& gpus = gpus_of_server[server];
    const bool has_ranks = std::ranges::any_of(gpus, [this](uint32_t gpu) {
      return gpu < job_.rank_count && !job_.operations[gpu].empty();
    });
    const auto spare = std::ranges::find_if(
        spares_, [&](int32_t candidate) { return !broken.contains(candidate); });
    if (!has_ranks || spare == spares_.end()) continue;
    for (size_t i = 0; i < gpus.size(); ++i) SwapRanks(gpus[i], gpus_of_server[*spare][i], job_);
    *spare = server;
    ++result_.servers_replaced;
    moved = true;
  }
  return moved;
}

void JobRestarter::OnConnectionsGone() {
  pairs_.Add(scenario_.fabric, replay_.executor());
  traffic_.Add(job_, replay_.executor());
}

}  // namespace railyard
