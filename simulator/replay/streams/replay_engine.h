// SPDX-License-Identifier: GPL-2.0-only
// Closed-loop replay: every rank's streams run their operations in order, each when the one before
// it on its stream and the one before it of its communicator are done on that rank. Nothing is
// started at a recorded time; only recorded or stated compute gaps pass between operations.
//
// An operation begins when it may (its kernel is launched then), its channels begin one launch
// latency later, and it ends on a rank when the last of that rank's channels is done.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/execution/paths/fabric_layout.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/episode_recording.h"
#include "simulator/replay/partitions/nvlink_partitions.h"
#include "simulator/replay/partitions/partition.h"
#include "simulator/replay/streams/bound.h"
#include "simulator/units/time_end.h"
#include "workloads/job/job.h"
#include "workloads/nccl/nccl_planner.h"
#include "workloads/programs/program_order.h"

namespace railyard {

// What was measured of one collective; kNeverPs where the run ended before.
struct CollectiveTimes {
  int64_t first_start_ps = kNeverPs;
  int64_t last_start_ps = kNeverPs;  // once every rank has started
  int64_t last_end_ps = kNeverPs;    // once every rank has ended
  int64_t bound_ps = 0;
  uint32_t calls_started = 0;
  uint32_t calls_ended = 0;
  bool lost_packets = false;  // to a fault
  bool replayed = false;      // from the cache
};

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

// Whether episodes that are known are simulated again.
enum class ReplayCacheMode : uint8_t {
  kOn,
  kOff,
  kVerify,  // simulated, and compared with what would have been replayed
};

// How collectives become transfers, and what the GPUs' side of them costs.
struct ReplayRules {
  NcclSettings nccl;
  NetIbSettings net_ib;
  NetSocketSettings net_socket;
  std::string transport = "rdma";  // name of a network stack
  GpuCosts gpu;
  ReplayCacheMode cache = ReplayCacheMode::kOn;
  bool partition_episodes = true;  // parts of the network have episodes of their own
  uint64_t seed = 1;               // of the ranks' skews
  bool has_load = false;           // some fault has GPUs send what is no operation's
  // What faults may ever do something to.
  std::vector<LinkId> faulty_links{};
  std::vector<uint32_t> faulty_gpus{};
  // What collectives' times went to is kept (times_spent(), waits()).
  bool keep_paths = false;
};

// What one rank waited for in all, beyond what its collectives take.
struct RankWait {
  uint32_t rank = 0;
  // The transfer that was repeated; the same for what a rank did slowly or late.
  uint32_t source_rank = 0;
  uint32_t destination_rank = 0;
  auto operator<=>(const RankWait&) const = default;
};
struct RankWaitTotals {
  uint64_t calls = 0;
  int64_t waited_ps = 0;
};

// What TimesHash() is made of: two independent sums.
using TimesHashSums = std::array<uint64_t, 2>;

class ReplayEngine final : private LaneObserver {
 public:
  // Whoever aborts a part of the job puts that on the wheel at least so long ahead.
  static constexpr int64_t kAbortNoticePs = 100 * kPsPerMs;

  // Rank r of the job is GPU r of the fabric. All references but `rules` must outlive this.
  // Precondition: NcclPlanner::Choose finds a choice for every collective.
  ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const Job& job, const ReplayRules& rules, const NicSettings& nic,
               ReplayObserver& observer);
  ~ReplayEngine() override;

  // Has the observer told of the collective's progress; beyond its beginning only where it is
  // planned as a whole.
  void WatchProgress(uint32_t collective) { watched_[collective] = {}; }

  // Keeps when each call of that rank begins and ends (calls_kept()). Before Start().
  void KeepCallsOf(uint32_t rank) {
    kept_rank_ = rank;
    calls_kept_.assign(job_.operations[rank].size(), {kNeverPs, kNeverPs});
  }

  // Schedules the first operation of every stream.
  void Start();

  // A GPU works at this share of its speed from now on, what it computes included; 0: it stands
  // still.
  void SetGpuSpeed(uint32_t gpu, double speed);

  // A part of the job ends where it is: nothing of it begins any more (restart.cc).
  void Halt(uint32_t part);
  // Ranks of a halted part that have been swapped with others of no part (SwapRanks).
  using SwappedRanks = std::vector<std::pair<uint32_t, uint32_t>>;
  // A halted part begins again, now, at each rank's operation of that number, as
  // ProgramOrder::RestartAt has it. What is left of the packets that it had under way means nothing
  // to it. `swapped`: since it was halted, in order.
  void RestartAt(uint32_t part, const std::vector<uint32_t>& first_of_rank,
                 const SwappedRanks& swapped);
  // Whether some part has something left to do, and may do it.
  bool IsAnyPartUp() const {
    return std::ranges::any_of(parts_, [](const PartProgress& part) {
      return part.calls_left > 0 && !part.is_halted && part.abort_reason.empty();
    });
  }
  // Ends a part of the job for good: nothing of it begins or ends any more. What is under way in
  // its channels goes on until it lacks what will not come. The run ends with the last part.
  void Abort(uint32_t part, const std::string& why);
  uint32_t PartOfRank(uint32_t rank) const { return part_of_rank_[rank]; }
  // GPUs of a part.
  uint32_t RankCountOf(uint32_t part) const {
    return static_cast<uint32_t>(std::ranges::count(part_of_rank_, part));
  }
  // When the running operation of a part that began last did; 0: none runs.
  int64_t last_running_begin_ps(uint32_t part) const;
  // Those of a part that are in one, ascending.
  std::vector<uint32_t> RanksInCollectives(uint32_t part) const;

  LaneExecutor& executor() { return *executor_; }
  const LaneExecutor& executor() const { return *executor_; }
  // What keeps the run, or what involves an owner of state, from being taken from the replay cache;
  // none without the cache.
  std::vector<ReplayObstacle> replay_obstacles() const {
    if (rules_.cache == ReplayCacheMode::kOff) return {};
    return registry_.Obstacles();
  }
  const std::vector<CollectiveTimes>& times() const { return times_; }
  // By operation of the kept rank; kNeverPs for computation and for what has not ended.
  struct CallSpan {
    int64_t begin_ps = 0;
    int64_t end_ps = 0;
  };
  const std::vector<CallSpan>& calls_kept() const { return calls_kept_; }
  // By collective, where paths are kept: of its last rank's end, from its first rank's start on.
  const std::vector<CriticalPath>& paths() const { return paths_; }
  const std::map<RankWait, RankWaitTotals>& waits() const { return waits_; }
  uint64_t calls_started() const { return calls_started_; }
  bool is_complete() const { return operations_left_ == 0; }
  // The last of them were replayed, and packets are counted that do not exist.
  bool has_ended_in_replay() const { return has_ended_in_replay_; }
  // Operations that ended so far; whether any runs.
  uint64_t calls_left() const { return operations_left_; }
  uint64_t collectives_ended() const { return collectives_ended_; }
  // What part of all calls has ended, where those that run count as what part of their steps has
  // been made: 0 to 1.
  double ShareDone() const;
  bool is_in_collective() const { return calls_started_ > calls_ended_; }
  // Whether some GPU stands still in the middle of its computation.
  // The run has stopped at the end of simulated time, or computes beyond it.
  bool HasReachedTimeEnd() const { return engine_.HasReachedTimeEnd() || end_ps() > kTimeEndPs; }
  bool has_stopped_computation() const { return !stopped_.empty(); }
  // Whether ranks of the part are in a collective, or stand still so.
  bool IsHeldUp(uint32_t part) const {
    const auto is_of_part = [&](const auto& call) { return IsOfPart(call, part); };
    return std::ranges::any_of(running_, is_of_part) || std::ranges::any_of(stopped_, is_of_part);
  }
  // What has become of a part of the job.
  struct PartProgress {
    uint64_t calls_left = 0;
    int64_t end_ps = 0;        // of its last call so far, or when it was aborted
    std::string abort_reason;  // empty: it was not
    bool is_halted = false;    // until it restarts
  };
  const std::vector<PartProgress>& parts() const { return parts_; }
  // When the last operation of a part ended, or it was aborted; of all parts.
  int64_t EndOfPartPs(uint32_t part) const;
  int64_t end_ps() const;
  // Sums over (operation, rank) of hashes of when it started and ended: independent of order.
  TimesHashSums TimesHash() const;
  // Different episodes that are known.
  size_t episode_count() const { return cache_.episode_count(); }
  // For runs that stalled: for each cause the longest chain of waits that ends there, on a line,
  // then who waits for whom, a line each (explain_waiting.cc).
  std::string ExplainWaiting() const;
  // As what a collective is replayed: "RING/SIMPLE".
  std::string ReplayNameOf(uint32_t collective) const;
  // What the rules assumed about layouts they do not cover.
  std::vector<std::string> Assumptions() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Marks the target of an event as the number of an operation that may begin; else it is the index
  // of one that runs.
  static constexpr uint32_t kBegins = 1u << 31;

  // One rank's call of a collective that may begin.
  struct Pending {
    int64_t begin_ps = 0;
    uint32_t number = 0;  // of the operation among those of all ranks, in rank order
    uint32_t rank = 0;
    // For a heap with the earliest on top, in the order of events.
    bool operator<(const Pending& other) const {
      return begin_ps != other.begin_ps ? begin_ps > other.begin_ps : number > other.number;
    }
  };
  // One that has begun and not ended.
  struct Running {
    uint32_t rank = 0;
    uint32_t index = 0;         // into job.operations[rank]
    uint32_t recorded = 0;      // in the episode that is being recorded
    uint32_t in_partition = 0;  // the same, of what is simulated ahead
    uint32_t partition = kNone;
    int64_t told_end_ps = 0;  // it is replayed until then; 0: it is not
    bool launched = false;
    uint16_t channels_left = 0;
    int64_t start_ps = 0;
    int64_t end_ps = 0;  // known so far
    std::shared_ptr<const CollectiveSchedule> schedule;
    CriticalPath path{};  // of the channel that ended last so far
    uint32_t next_free = kNone;
  };
  using PlanKey = std::array<uint64_t, 5>;
  struct Plan {
    std::shared_ptr<const CollectiveSchedule> schedule;
    ReplayChoice choice;
    StepCosts costs;
    int64_t bound_ps = -1;         // not computed yet
    uint64_t bound_failovers = 0;  // of the executor when it was
    std::vector<std::optional<std::vector<uint32_t>>> gpus_on_network;  // by rank, once asked for
  };
  struct Communicator {
    std::unique_ptr<NcclPlanner> planner;
    std::vector<uint32_t> gpus;
    // By kind, count, datatype, root and choice: regular jobs repeat few.
    std::map<PlanKey, Plan> plans;
  };

  // A rank's call by its place.
  struct Call {
    uint32_t rank = 0;
    uint32_t index = 0;  // into job.operations[rank]
  };
  static void HandleOperation(void* self, uint32_t operation);

  template <typename Place>
  bool IsOfPart(const Place& place, uint32_t part) const {
    return place.rank != kNone && part_of_rank_[place.rank] == part;
  }
  bool IsAborted(uint32_t rank) const { return !parts_[part_of_rank_[rank]].abort_reason.empty(); }
  void BuildCommunicators();
  Communicator BuildCommunicator(uint32_t number) const;
  void Relocate(uint32_t part, const SwappedRanks& swapped);
  void BuildExecutor();
  void CountCalls();
  void FindP2pCalls();
  void DrawSkews();
  void NumberPlans();
  void NumberP2pLists();
  uint64_t P2pPlanKey(const Call& call) const;
  template <typename Place>
  const JobOperation& CallOf(const Place& place) const {
    return job_.operations[place.rank][place.index];
  }
  // Of a call at a place.
  template <typename Place>
  uint32_t CollectiveOf(const Place& place) const {
    return job_.CollectiveOf(place.rank, CallOf(place));
  }
  template <typename Place>
  uint32_t NumberOf(const Place& place) const {
    return first_number_[place.rank] + place.index;
  }
  // Of the operation with this number, of the rank.
  uint32_t PlanNumberOf(uint32_t rank, uint32_t number) const;
  void MayBegin(uint32_t rank, uint32_t index, int64_t begin_ps);
  // An operation's computation waits for its GPU to go on.
  void Stop(uint32_t rank, uint32_t number, int64_t left_ps);
  void NoteLate(uint32_t number, int64_t since_ps, int64_t left_ps, int64_t slowed_ps);
  // Puts the first of `pending_` on the wheel.
  void ScheduleFirst();
  void Schedule(uint32_t running, int64_t time_ps);
  void OnEvent(uint32_t target);
  void Begin(const Pending& pending);
  uint32_t NewRunning(uint32_t rank, uint32_t number, int64_t start_ps);
  void FreeRunning(uint32_t running);
  void Launch(uint32_t running);
  void End(uint32_t running);
  // What beginnings and ends are to collectives, programs and results, simulated or replayed.
  void NoteBegin(const Call& call, int64_t begin_ps);
  void NoteEnd(const Call& call, int64_t begin_ps, int64_t end_ps, const CriticalPath& path);
  void NotePath(const Call& call, int64_t begin_ps, int64_t end_ps, CriticalPath path);
  void AddToHash(const Call& call, int64_t begin_ps, int64_t end_ps, TimesHashSums& sums) const;

  // Episodes (episode_replay.cc).
  bool IsQuiet();
  void Visit(StateArchive& archive);
  // At rest; true if operations that were pending have been replayed.
  bool ReplayEpisodes();
  void NoteMiss();
  void AddCounts(std::vector<uint32_t> replayed);
  void EndWith(const Episode& episode, int64_t begin_ps);
  std::optional<uint32_t> TryKnown(uint32_t state);
  bool Try(const Episode& episode);
  bool FollowEpisode(const Episode& episode, int64_t start_ps);
  void StartRecording(const NetworkRest& rest);
  void FinishRecording(const NetworkRest& rest);
  uint32_t StateWithWhatIsNew(const NetworkRest& now, uint32_t state);
  void NoteNothingRuns();
  void CheckLastEpisode();
  static void CheckIsAsTold(const EpisodeRecording& recording, bool holds);

  // Episodes of partitions (partition_replay.cc).
  void BuildPartitions();
  void AddPartitionsOfNvlinks();
  void AddPartitionsOfNics();
  bool MayFail(const std::vector<LinkId>& links, const std::vector<uint32_t>& gpus) const;
  std::vector<uint32_t> ClassesOfCommunicators() const;
  // Whether a rank's operation does.
  bool UsesNvlinks(uint32_t rank, const JobOperation& operation) const;
  bool UsesNics(uint32_t rank, const JobOperation& operation) const;
  uint32_t PartitionOf(const Running& running) const;
  bool IsOfPartitionAlone(uint32_t partition, uint32_t collective) const;
  static uint32_t PlaceOf(const Partition& partition, uint32_t gpu);
  static uint64_t MadeKey(uint32_t plan, uint32_t place) { return uint64_t{plan} << 32 | place; }
  void VisitPartition(const Partition& partition, StateArchive& archive);
  void VisitCountersOf(const Partition& partition, StateArchive& archive);
  PartitionRest RestOf(const Partition& partition, bool is_begin);
  // The operation begins: true if it is replayed, and will end by itself.
  bool BeginInPartition(uint32_t running);
  // The same of its kernel.
  bool LaunchInPartition(uint32_t running);
  void Follow(uint32_t running);
  void BeginPartitionEpisode(uint32_t partition, uint32_t collective);
  std::vector<PartitionCall> CallsOf(const Partition& partition, uint32_t collective) const;
  // The episode that begins in the state with these calls.
  uint32_t FindKnown(const Partition& partition, const std::vector<PartitionCall>& calls,
                     uint32_t state);
  bool IsProgressWatched() const;
  bool CanReplay(const Partition& partition, const std::vector<PartitionCall>& calls,
                 const Episode& episode);
  int64_t NextDisturbancePs(bool by_faults) const;
  uint32_t RecordAhead(const Partition& partition, const std::vector<PartitionCall>& calls,
                       const PartitionRest& rest);
  void EndAhead(uint32_t running);
  void PutBack(const Partition& partition, const PartitionRest& rest);
  const std::vector<uint32_t>& GpusOnNetworkOf(uint32_t rank, uint32_t index);
  bool Touches(uint32_t rank, uint32_t index, const Partition& partition);
  bool MayBeTouched(const Partition& partition, const std::vector<PartitionCall>& calls,
                    int64_t until_ps);
  bool MayTouchSoon(const Partition& partition, std::span<const NearCall> near, int64_t until_ps);
  void CheckIsApart(const Running& running);
  // What is lost or times out ahead has others to tell, whose time it is not.
  void CheckNothingFailsAhead() const {
    if (ahead_ != nullptr) [[unlikely]]
      throw FabricNetwork::NotApart();
  }
  void EndInPartition(uint32_t running);
  void FinishReplay(Partition& partition);
  void CheckEpisode(Partition& partition);
  void ForgetEpisodesOf(uint32_t part);
  void ForgetCallsOf(uint32_t part);
  void RebuildPartitions();
  bool IsOnDetour(const Partition& partition) const;

  ReplayChoice ChoiceOf(const JobCollective& collective) const;
  PlanKey KeyOf(const JobCollective& collective) const;
  Plan& PlanOf(const JobCollective& collective);
  StepCosts CostsOf(const JobCollective& collective);
  std::shared_ptr<const CollectiveSchedule> ScheduleOf(const Running& running);
  int64_t BoundOf(uint32_t collective);
  int64_t BoundOfSchedule(const Communicator& communicator, const CollectiveSchedule& schedule);
  void AddToBound(const Communicator& communicator, uint32_t channel, uint32_t from, uint32_t to,
                  ConnectionUse use, uint64_t bytes);
  void FinishCollective(uint32_t collective, int64_t end_ps);

  // Explanations (explain_waiting.cc).
  struct WaitChain;
  std::string NameOf(const Call& call) const;
  const Pending* PendingOf(uint32_t rank) const;  // the first, or null
  WaitChain FollowWait(const std::vector<LaneExecutor::Waiting>& waiting,
                       const std::map<uint32_t, std::vector<size_t>>& waits_of_rank,
                       size_t first) const;
  std::string ExplainChains(const std::vector<LaneExecutor::Waiting>& waiting) const;

  // LaneObserver.
  void OnChannelFinished(uint32_t operation, int64_t end_ps, const CriticalPath* path) override;
  void OnPacketLost(uint32_t connection, LinkId link) override;
  void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) override;
  void OnRetransmission(uint32_t connection) override;
  void OnLossRecovered(uint32_t connection) override;
  void OnConnectionError(uint32_t connection, bool at_sender, const std::string& why) override;
  void OnPayloadTaken(uint32_t collective, uint64_t bytes) override;
  void OnDetour(std::span<const uint32_t> gpus) override;

  struct Watched {
    uint64_t total_bytes = 0;
    uint64_t taken_bytes = 0;
  };
  void BeginWatched(uint32_t collective);
  // The call has ended: those that it kept from beginning may begin.
  void LetFollow(const Call& call, int64_t end_ps);
  // The same of one of them, which computes until `begin_ps` at the GPU's own speed.
  void MayBeginAfter(int64_t end_ps, uint32_t rank, uint32_t index, int64_t begin_ps);

  const FabricGraph& graph_;
  FabricSimulatorImpl& engine_;
  FabricNetwork& network_;
  const Job& job_;
  ReplayRules rules_;
  ReplayObserver& observer_;
  BoundModel bound_model_;
  NicSettings nic_;
  EcmpRouting& routing_;
  std::unique_ptr<LaneExecutor> executor_;
  StateRegistry registry_;  // of all that a snapshot of the whole network walks
  std::vector<Communicator> communicators_;
  ProgramOrder order_;
  std::vector<uint32_t> first_number_;  // by rank: of its operations
  std::vector<Pending> pending_;        // heap
  // Pending, of GPUs that stand still: what is left of their computation is their begin.
  std::vector<Pending> stopped_;
  // Pending operations of slow GPUs that compute beyond the end of time, by number: since when, and
  // what was left then at the GPU's own speed.
  struct Late {
    int64_t since_ps = 0;
    int64_t left_ps = 0;
  };
  std::unordered_map<uint32_t, Late> late_;
  Pending scheduled_{.begin_ps = -1};  // the last of `pending_` put on the wheel
  std::vector<Running> running_;
  uint32_t free_running_ = kNone;
  uint32_t running_count_ = 0;
  std::vector<int64_t> skew_ps_;  // by rank
  std::vector<CollectiveTimes> times_;
  std::vector<CriticalPath> paths_;
  std::map<RankWait, RankWaitTotals> waits_;
  std::vector<uint32_t> call_count_;  // by collective
  // By collective: rank and index of its calls; of point-to-point ones only.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> p2p_calls_;
  TimesHashSums ended_hash_{};
  ReplayCacheMode cache_mode_;
  EpisodeCache cache_;
  std::optional<EpisodeRecording> recording_;
  int64_t next_disturbance_ps_ = kNeverPs;
  uint32_t misses_ = 0;  // in a row
  bool has_ended_in_replay_ = false;
  // Without partitions nothing is looked for in them.
  std::unique_ptr<NvlinkPartitions> nvlinks_;
  std::vector<Partition> partitions_;  // those of NVLinks first, numbered as there
  std::vector<uint32_t> nic_partition_of_communicator_;
  EpisodeCache partition_cache_;
  uint32_t replayed_partitions_ = 0;     // now
  SpeculativeEpisode* ahead_ = nullptr;  // now
  std::set<uint32_t> gpus_on_detours_;
  int64_t least_launch_ps_ = 0;
  std::vector<uint32_t> scratch_gpus_;  // GpusOnNetworkOf's
  // MayTouchSoon's.
  std::vector<int64_t> scratch_ends_ps_;
  std::vector<std::pair<uint32_t, int64_t>> scratch_end_of_stream_;
  std::vector<bool> has_begun_;  // by number, where there are partitions of NICs
  // Equal for calls that do the same, on whichever server: by collective, and for point-to-point by
  // what a call sends and receives and its communicator's class (P2pPlanKey).
  std::vector<uint32_t> plan_of_collective_;
  std::unordered_map<uint64_t, uint32_t> plan_of_p2p_;
  std::vector<std::vector<uint32_t>> p2p_lists_;  // by program and index
  std::vector<uint32_t> class_of_communicator_;
  // What FollowEpisode() let begin, and what was pending before.
  std::vector<Call> tried_;
  std::vector<Pending> pending_before_;

  std::map<uint32_t, Watched> watched_;  // by collective
  uint64_t calls_started_ = 0;
  uint32_t kept_rank_ = kNone;
  std::vector<CallSpan> calls_kept_;
  uint64_t calls_ended_ = 0;
  uint64_t collectives_ended_ = 0;
  uint64_t operations_left_ = 0;
  std::vector<PartProgress> parts_;
  std::vector<uint32_t> part_of_rank_;
};

}  // namespace railyard
