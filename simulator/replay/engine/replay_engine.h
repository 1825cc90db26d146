// SPDX-License-Identifier: GPL-2.0-only
// Replays a job on a network. It connects the objects that do the work: StreamRunner decides which
// call may begin, PlanCache provides a call's plan, LaneExecutor runs its channels, CallLedger
// records its times, and EpisodeReplayer and PartitionReplayer replay calls that need not be
// simulated again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/execution/executor/lane_executor.h"
#include "simulator/replay/engine/replay_rules.h"
#include "simulator/replay/episodes/count_replayed.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/episode_replayer.h"
#include "simulator/replay/partitions/executor_partitions.h"
#include "simulator/replay/partitions/partition_map.h"
#include "simulator/replay/partitions/partition_neighbours.h"
#include "simulator/replay/partitions/partition_replayer.h"
#include "simulator/replay/streams/call_hooks.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/plan_numbers.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/state/state_registry.h"
#include "simulator/units/time_end.h"
#include "workloads/job/job.h"

namespace railyard {

// Defines the interface that receives losses, with the connections to which the packets belonged,
// and other events of the replay.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  virtual void OnPacketLost(ConnectionId connection, const FlowLoss& loss) = 0;
  virtual void OnPacketRepeated(ConnectionId connection, uint32_t payload_bytes) = 0;
  virtual void OnRetransmission(ConnectionId connection) = 0;
  virtual void OnLossRecovered(ConnectionId connection) = 0;
  // Is called when a queue pair or NVLink of the job failed and that rank's process receives the
  // error. The observer decides how the job continues: RestartAt(), Abort().
  virtual void OnRankError(GlobalRank rank, const std::string& why) = 0;
  // Is called when the programs that used the connection have ended; its losses will not be
  // repaired.
  virtual void OnConnectionClosed(ConnectionId /*connection*/) {}
  // Is called when a halted part of the job restarts.
  virtual void OnPartRestarted(PartIndex /*part*/) {}
  // Is called when an observed collective begins, and when a share of its payload, up to 1, has
  // been received.
  virtual void OnCollectiveProgress(CollectiveIndex /*collective*/, double /*progress*/) {}
};

class ReplayEngine final : private LaneObserver,
                           private MovedConnections,
                           private CallHost,
                           private CallReplay {
 public:
  static constexpr int64_t kAbortNoticePs = PartitionReplayer::kAbortNoticePs;

  // Rank r of the job is GPU r of the fabric. All references except `rules` must outlive this.
  // Precondition: NcclPlanner::Choose finds a choice for every collective.
  ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const Job& job, const ReplayRules& rules, ReplayObserver& observer);
  ~ReplayEngine() override;

  // Returns the functions that the ledger calls. They must be set before Start().
  CallHooks& hooks() { return ledger_.hooks(); }
  // Makes `counting` count replayed packets. Must be called before Start().
  void SetCounting(const CountReplayed& counting) {
    episodes_.SetCounting(counting);
    partitions_.SetCounting(counting);
  }

  // Schedules the first operation of every stream. All events that change the network's state must
  // be registered.
  void Start();

  // --- A run whose ranks several processes simulate (replay_shards.cc), in place of Start()
  // Opens the connections of all calls, which the processes then have in common. Returns why the
  // run cannot be divided; empty if it can.
  std::string PrepareShards();
  // Returns whether PrepareShards() numbered connections as Start() does.
  bool has_numbers_of_one_process() const { return has_numbers_of_one_process_; }
  // Starts the ranks that `is_own` selects; each process calls it.
  void StartShard(const std::function<bool(GlobalRank rank)>& is_own);
  // Adds the calls that all processes have simulated; the process that has prepared the run calls
  // it once.
  void AbsorbCalls(std::vector<StreamRunner::Span> calls) { streams_.Absorb(std::move(calls)); }

  // Sets the speed of a GPU from now on, its computation included, as a share of its full speed; 0
  // halts it.
  void SetGpuSpeed(GpuIndex gpu, double speed);

  // --- Parts of the job --------------------------------------------------------------------------
  // Stops a part of the job: no operation of it begins any more.
  void Halt(PartIndex part);
  // Lists ranks of a halted part that have been swapped with ranks of no part (SwapRanks).
  using SwappedRanks = std::vector<std::pair<GlobalRank, GlobalRank>>;
  // Restarts a halted part now, at each rank's operation of that number, as ProgramOrder::RestartAt
  // does. Its packets that are still in flight have no further effect on it. `swapped` are the
  // swaps since it was halted, in order.
  void RestartAt(PartIndex part, const std::vector<uint32_t>& first_of_rank,
                 const SwappedRanks& swapped);
  // Ends a part of the job permanently: no operation of it begins or ends any more. Its channels
  // continue until they lack data that will not arrive. The run ends with the last part. The call
  // must have been scheduled at least kAbortNoticePs ahead.
  void Abort(PartIndex part, const std::string& why);
  // These return when the last operation of a part ended or the part was aborted, and the same for
  // all parts.
  int64_t EndOfPartPs(PartIndex part) const;
  int64_t end_ps() const;

  // --- The run -----------------------------------------------------------------------------------
  // These return the parts that others read: the calls by their numbers, their plans for the
  // current GPUs, which of them run, and their times so far.
  const CallTable& calls() const { return calls_; }
  const PlanCache& plans() const { return plans_; }
  const StreamRunner& streams() const { return streams_; }
  const CallLedger& ledger() const { return ledger_; }
  LaneExecutor& executor() { return *executor_; }
  const LaneExecutor& executor() const { return *executor_; }
  // Returns the obstacles to replaying the run, or the collectives that involve an owner of state;
  // empty if the rules do not request them.
  std::vector<ReplayObstacle> replay_obstacles() const {
    if (!rules_.lists_obstacles) return {};
    return registry_.Obstacles();
  }
  bool is_complete() const { return ledger_.calls_left() == 0; }
  // Returns true if the last calls were replayed; the counters then include packets that do not
  // exist.
  bool has_ended_in_replay() const { return episodes_.has_ended_in_replay(); }
  // Returns true if the run has stopped at the end of simulated time, or computes beyond it.
  bool HasReachedTimeEnd() const { return engine_.HasReachedTimeEnd() || end_ps() > kTimeEndPs; }
  // Returns the share of all calls that have ended, 0 to 1; a running call counts as the share of
  // its steps that are done.
  double ShareDone() const;
  bool is_in_collective() const { return ledger_.calls_started() > ledger_.calls_ended(); }
  // Returns, for a run that stalled, a line with the longest chain of waits for each cause, then a
  // line for each wait of a rank for others.
  std::string ExplainWaiting() const;

  int64_t now_ps() const { return engine_.NowPs(); }
  // Returns sums, over (operation, rank), of hashes of their start and end, which do not depend on
  // the order.
  TimesHashSums TimesHash() const;
  // Returns how many episodes that the cache knew were simulated and found equal
  // (ReplayCacheMode::kVerify).
  uint64_t episodes_verified() const {
    return episodes_.episodes_verified() + partitions_.episodes_verified();
  }

 private:
  std::unique_ptr<LaneExecutor> BuildExecutor(EcmpRouting& routing);
  PartitionMap::Settings PartitionSettings() const;
  void NumberPlans();
  // Returns the call's program, without the number of its operation. It refers to `schedule`.
  RankProgram ProgramOf(const Call& call, std::shared_ptr<const CollectiveSchedule>& schedule);
  void Relocate(PartIndex part, const SwappedRanks& swapped);
  // Checks that no loss or time-out occurs ahead of time, because observers, to which it would be
  // reported, are at an earlier time.
  void CheckNothingFailsAhead() const {
    if (streams_.is_ahead()) [[unlikely]]
      throw SharedBuffers::NotIndependent();
  }

  // Implements LaneObserver.
  void OnChannelFinished(RunningIndex operation, int64_t end_ps, const CriticalPath* path) override;
  void OnPacketLost(ConnectionId connection, const FlowLoss& loss) override;
  void OnPacketRepeated(ConnectionId connection, uint32_t payload_bytes) override;
  void OnRetransmission(ConnectionId connection) override;
  void OnLossRecovered(ConnectionId connection) override;
  void OnConnectionError(ConnectionId connection, bool at_sender, const std::string& why) override;
  void OnPayloadTaken(CollectiveIndex collective, uint64_t bytes) override;
  void OnDetour(std::span<const GpuIndex> gpus) override;

  // Implements MovedConnections.
  uint64_t move_count() const override;
  bool HasMoved(CommunicatorIndex communicator, uint32_t channel, RankIndex from, RankIndex to,
                ConnectionUse use) const override;

  // Implements CallHost.
  int64_t LaunchLatencyPs(const Call& call) override;
  Launched Launch(RunningIndex operation, const Call& call) override;

  // Implements CallReplay.
  bool ReplayFromRest() override;
  bool OnBegin(RunningIndex operation) override;
  bool OnLaunch(RunningIndex operation) override;
  void OnEnd(RunningIndex operation) override;
  void OnNothingRuns() override;

  // Members are in the order of their construction.
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
  StateRegistry registry_;  // of all state in a snapshot of the whole network
  std::unique_ptr<LaneExecutor> executor_;
  PlanNumbers numbers_;
  StreamRunner streams_;
  bool has_numbers_of_one_process_ = true;
  EpisodeCache cache_;
  EpisodeReplayer episodes_;
  ExecutorPartitions host_;
  PartitionMap map_;
  PartitionNeighbours neighbours_;
  EpisodeCache partition_cache_;
  PartitionReplayer partitions_;
};

}  // namespace railyard
