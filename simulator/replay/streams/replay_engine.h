// SPDX-License-Identifier: GPL-2.0-only
// The replay of a job on a network: wires the objects that do it. StreamRunner says which call may
// begin when, PlanCache what a call does, LaneExecutor runs its channels, CallLedger records its
// times; EpisodeReplayer and PartitionReplayer know what need not be simulated again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/episode_replayer.h"
#include "simulator/replay/partitions/executor_partitions.h"
#include "simulator/replay/partitions/partition_map.h"
#include "simulator/replay/partitions/partition_neighbours.h"
#include "simulator/replay/partitions/partition_replayer.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/plan_numbers.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/replay_rules.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/state/state_registry.h"
#include "simulator/units/time_end.h"
#include "workloads/job/job.h"

namespace railyard {

// Told of losses, with the collective whose packets they were.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  virtual void OnPacketLost(uint32_t connection, LinkId link) = 0;
  virtual void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) = 0;
  virtual void OnRetransmission(uint32_t connection) = 0;
  virtual void OnLossRecovered(uint32_t connection) = 0;
  // A queue pair or NVLink of the job failed, and that rank's process is told. What becomes of the
  // job is the observer's business: RestartAt(), Abort().
  virtual void OnRankError(uint32_t rank, const std::string& why) = 0;
  // The programs that used it have been ended: what it has lost is not made good any more.
  virtual void OnConnectionClosed(uint32_t /*connection*/) {}
  // A part of the job that was halted begins again.
  virtual void OnPartRestarted(uint32_t /*part*/) {}
  // A watched collective begins, or so much of its payload has been taken in; 1: all.
  virtual void OnCollectiveProgress(uint32_t /*collective*/, double /*progress*/) {}
};

class ReplayEngine final : private LaneObserver,
                           private MovedConnections,
                           private CallHost,
                           private CallReplay {
 public:
  static constexpr int64_t kAbortNoticePs = PartitionReplayer::kAbortNoticePs;
  using PartProgress = CallLedger::PartProgress;
  using CallSpan = CallLedger::CallSpan;

  // Rank r of the job is GPU r of the fabric. All references but `rules` must outlive this.
  // Precondition: NcclPlanner::Choose finds a choice for every collective.
  ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const Job& job, const ReplayRules& rules, const NicSettings& nic,
               ReplayObserver& observer);
  ~ReplayEngine() override;

  // Has the observer told of the collective's progress; beyond its beginning only where it is
  // planned as a whole.
  void WatchProgress(uint32_t collective) { progress_.Watch(collective); }
  // Keeps when each call of that rank begins and ends (calls_kept()). Before Start().
  void KeepCallsOf(uint32_t rank) { ledger_.KeepCallsOf(rank); }

  // Schedules the first operation of every stream.
  void Start() { streams_.Start(); }

  // A GPU works at this share of its speed from now on, what it computes included; 0: it stands
  // still.
  void SetGpuSpeed(uint32_t gpu, double speed);

  // --- Parts of the job --------------------------------------------------------------------------
  // A part of the job ends where it is: nothing of it begins any more.
  void Halt(uint32_t part);
  // Ranks of a halted part that have been swapped with others of no part (SwapRanks).
  using SwappedRanks = std::vector<std::pair<uint32_t, uint32_t>>;
  // A halted part begins again, now, at each rank's operation of that number, as
  // ProgramOrder::RestartAt has it. What is left of the packets that it had under way means nothing
  // to it. `swapped`: since it was halted, in order.
  void RestartAt(uint32_t part, const std::vector<uint32_t>& first_of_rank,
                 const SwappedRanks& swapped);
  // Ends a part of the job for good: nothing of it begins or ends any more. What is under way in
  // its channels goes on until it lacks what will not come. The run ends with the last part.
  // Whoever does so puts that on the wheel kAbortNoticePs ahead or more.
  void Abort(uint32_t part, const std::string& why);
  // Whether some part has something left to do, and may do it.
  bool IsAnyPartUp() const {
    return std::ranges::any_of(parts(), [](const PartProgress& part) {
      return part.calls_left > 0 && !part.is_halted && part.abort_reason.empty();
    });
  }
  const std::vector<PartProgress>& parts() const { return ledger_.parts(); }
  uint32_t PartOfRank(uint32_t rank) const { return calls_.PartOf(rank); }
  // GPUs of a part.
  uint32_t RankCountOf(uint32_t part) const {
    return static_cast<uint32_t>(std::ranges::count(calls_.parts_of_ranks(), part));
  }
  // When the running operation of a part that began last did; 0: none runs.
  int64_t last_running_begin_ps(uint32_t part) const { return streams_.LastBeginPs(part); }
  // Those of a part that are in one, ascending.
  std::vector<uint32_t> RanksInCollectives(uint32_t part) const {
    return streams_.RanksInCollectives(part);
  }
  // Whether ranks of the part are in a collective, or stand still so.
  bool IsHeldUp(uint32_t part) const { return streams_.IsHeldUp(part); }
  // When the last operation of a part ended, or it was aborted; of all parts.
  int64_t EndOfPartPs(uint32_t part) const;
  int64_t end_ps() const;

  // --- The run -----------------------------------------------------------------------------------
  LaneExecutor& executor() { return *executor_; }
  const LaneExecutor& executor() const { return *executor_; }
  // Reasons why the run, or what involves an owner of state, is not taken from the replay cache;
  // none without the cache.
  std::vector<ReplayObstacle> replay_obstacles() const {
    if (rules_.cache == ReplayCacheMode::kOff) return {};
    return registry_.Obstacles();
  }
  bool is_complete() const { return ledger_.calls_left() == 0; }
  // The last of them were replayed, and packets are counted that do not exist.
  bool has_ended_in_replay() const { return episodes_.has_ended_in_replay(); }
  // The run has stopped at the end of simulated time, or computes beyond it.
  bool HasReachedTimeEnd() const { return engine_.HasReachedTimeEnd() || end_ps() > kTimeEndPs; }
  // The share of all calls that has ended, where one that runs counts as the share of its steps
  // that has been made: 0 to 1.
  double ShareDone() const;
  bool is_in_collective() const { return ledger_.calls_started() > ledger_.calls_ended(); }
  // Whether some GPU stands still in the middle of its computation.
  bool has_stopped_computation() const { return streams_.has_stopped_computation(); }
  // For runs that stalled: for each cause the longest chain of waits that ends there, on a line,
  // then who waits for whom, a line each.
  std::string ExplainWaiting() const;

  // --- What was recorded (CallLedger) ------------------------------------------------------------
  const std::vector<CollectiveTimes>& times() const { return ledger_.times(); }
  // By operation of the kept rank; kNeverPs for computation and for what has not ended.
  const std::vector<CallSpan>& calls_kept() const { return ledger_.calls_kept(); }
  // By collective, where paths are kept: of its last rank's end, from its first rank's start on.
  const std::vector<CriticalPath>& paths() const { return ledger_.paths(); }
  const std::map<RankWait, RankWaitTotals>& waits() const { return ledger_.waits(); }
  uint64_t calls_started() const { return ledger_.calls_started(); }
  uint64_t calls_left() const { return ledger_.calls_left(); }
  uint64_t collectives_ended() const { return ledger_.collectives_ended(); }
  // Sums over (operation, rank) of hashes of when it started and ended: independent of order.
  TimesHashSums TimesHash() const;
  // Different episodes of the whole network that are known.
  size_t episode_count() const { return cache_.episode_count(); }
  // As what a collective is replayed: "RING/SIMPLE".
  std::string ReplayNameOf(uint32_t collective) const { return plans_.ReplayNameOf(collective); }
  // Assumptions of the rules about layouts they do not cover.
  std::vector<std::string> Assumptions() const { return plans_.Assumptions(); }

 private:
  std::unique_ptr<LaneExecutor> BuildExecutor(EcmpRouting& routing, const NicSettings& nic);
  PartitionMap::Settings PartitionSettings() const;
  void NumberPlans();
  void Relocate(uint32_t part, const SwappedRanks& swapped);
  // A loss or a timeout ahead would have to be told to others, whose time it is not.
  void CheckNothingFailsAhead() const {
    if (streams_.is_ahead()) [[unlikely]]
      throw FabricNetwork::NotApart();
  }

  // LaneObserver.
  void OnChannelFinished(uint32_t operation, int64_t end_ps, const CriticalPath* path) override;
  void OnPacketLost(uint32_t connection, LinkId link) override;
  void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) override;
  void OnRetransmission(uint32_t connection) override;
  void OnLossRecovered(uint32_t connection) override;
  void OnConnectionError(uint32_t connection, bool at_sender, const std::string& why) override;
  void OnPayloadTaken(uint32_t collective, uint64_t bytes) override;
  void OnDetour(std::span<const uint32_t> gpus) override;

  // MovedConnections.
  uint64_t move_count() const override;
  bool HasMoved(uint32_t communicator, uint32_t channel, uint32_t from, uint32_t to,
                ConnectionUse use) const override;

  // CallHost.
  int64_t LaunchLatencyPs(const Call& call) override;
  Launched Launch(uint32_t operation, const Call& call) override;
  bool StandsStill(uint32_t gpu) const override;
  int64_t AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const override;

  // CallReplay.
  bool ReplayFromRest() override;
  bool OnBegin(uint32_t operation) override;
  bool OnLaunch(uint32_t operation) override;
  void OnEnd(uint32_t operation) override;
  void OnNothingRuns() override;

  // In the order in which they are built.
  const FabricGraph& graph_;
  FabricSimulatorImpl& engine_;
  FabricNetwork& network_;
  const Job& job_;
  ReplayRules rules_;
  ReplayObserver& observer_;
  CallTable calls_;
  PlanCache plans_;
  ProgressWatch progress_;
  CallLedger ledger_;
  StateRegistry registry_;  // of all that a snapshot of the whole network walks
  std::unique_ptr<LaneExecutor> executor_;
  PlanNumbers numbers_;
  StreamRunner streams_;
  EpisodeCache cache_;
  EpisodeReplayer episodes_;
  ExecutorPartitions host_;
  PartitionMap map_;
  PartitionNeighbours neighbours_;
  EpisodeCache partition_cache_;
  PartitionReplayer partitions_;
};

}  // namespace railyard
