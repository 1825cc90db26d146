// SPDX-License-Identifier: GPL-2.0-only
// Replays a job's streams in a closed loop: every rank's streams run their operations in order,
// each when the previous one on its stream and the previous one of its communicator have ended on
// that rank. No operation starts at a recorded time; only recorded or stated compute gaps pass
// between operations.
//
// A call begins when its kernel is launched, its channels begin one launch latency later, and it
// ends on a rank when the last of that rank's channels has ended. The runner depends on neither
// networks nor episodes: a CallHost runs the channels, and a CallReplay may provide the ends of
// calls that need not be simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/operation_event.h"
#include "simulator/units/job_ids.h"
#include "workloads/collectives/schedule.h"
#include "workloads/programs/program_order.h"

namespace railyard {

// Runs the channels of calls.
class CallHost {
 public:
  virtual ~CallHost() = default;
  // Returns the time in ps from a call's start to that of its channels.
  virtual int64_t LaunchLatencyPs(const Call& call) = 0;
  // Begins the call's channels now. For each, StreamRunner::OnChannelFinished(operation) is called
  // once, possibly before this returns.
  struct Launched {
    uint32_t channels = 0;
    std::shared_ptr<const CollectiveSchedule> schedule{};  // kept until the call has ended
  };
  virtual Launched Launch(RunningIndex operation, const Call& call) = 0;
};

// Replays calls that need not be simulated. `operation` is an index into StreamRunner::running().
class CallReplay {
 public:
  virtual ~CallReplay() = default;
  // Is called when no call runs and the first pending call is due. Returns true if calls have been
  // replayed, by a trial that was kept.
  virtual bool ReplayFromRest() = 0;
  // Is called when the call has begun. Returns true if it does not launch, because EndAt() was
  // called for it.
  virtual bool OnBegin(RunningIndex operation) = 0;
  // Is called when the call's channels are due to begin. Returns true if they do not begin, because
  // EndAt() was called for it.
  virtual bool OnLaunch(RunningIndex operation) = 0;
  // Is called when the call has ended; its index is free afterwards.
  virtual void OnEnd(RunningIndex operation) = 0;
  // Is called when the last running call has ended, before its dependents begin.
  virtual void OnNothingRuns() = 0;
};

class StreamRunner {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Describes a call that may begin; its start comes after the rest of the computation before it.
  struct Pending {
    int64_t begin_ps = 0;
    CallNumber number{};  // CallTable's
    GlobalRank rank{};
    // Orders a heap with the earliest on top, in the order of events.
    bool operator<(const Pending& other) const {
      return begin_ps != other.begin_ps ? begin_ps > other.begin_ps : number > other.number;
    }
  };
  // Describes a call that has begun and not ended.
  struct Running {
    Call call{GlobalRank::kNone, 0};
    int64_t start_ps = 0;
    int64_t end_ps = 0;           // of its channels so far
    int64_t replayed_end_ps = 0;  // as set by EndAt(); 0 if it is simulated
    uint32_t ahead = kNone;       // its place among the calls that run ahead
    RunningIndex next_free = RunningIndex::kNone;
    uint16_t channels_left = 0;
    bool is_launched = false;
    std::shared_ptr<const CollectiveSchedule> schedule{};
    CriticalPath path{};  // of the latest channel so far

    bool is_free() const { return call.rank == GlobalRank::kNone; }
  };

  // Registers with the engine as the handler of event_order::kOperation. All references must
  // outlive this. `clock` has the speeds of the GPUs; `seed` draws the ranks' skews.
  StreamRunner(FabricSimulatorImpl& engine, const CallTable& calls, CallLedger& ledger,
               const CtaClock& clock, CallHost& host, CallReplay& replay, uint64_t seed);
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  // Calls the ledger's CallHooks::on_all_ended if no call is left. Must be called when calls may
  // have been aborted.
  void NotifyIfAllEnded() const;

  // Schedules the first operation of every stream.
  void Start();
  // --- A run whose ranks several processes simulate (stream_shards.cc), in place of Start()
  // Determines the first operation of each stream: pending().
  void Prepare();
  // Returns the number of pending operations whose ranks `is_own` selects.
  uint64_t CountPending(const std::function<bool(GlobalRank rank)>& is_own) const;
  // Schedules the pending operations of ranks that `is_own` selects, and drops the others.
  void StartOwn(const std::function<bool(GlobalRank rank)>& is_own);
  // Describes a call that has begun, and has ended unless end_ps is kNeverPs.
  struct Span {
    CallNumber number{};  // CallTable's
    GlobalRank rank{};
    int64_t begin_ps = 0;
    int64_t end_ps = 0;
  };
  // Returns the calls that have begun and not ended.
  std::vector<Span> RunningSpans() const;
  // Adds the calls that other processes have simulated to the ledger and to the programs' order.
  // Must be called once, after Prepare(), with all calls.
  void Absorb(std::vector<Span> spans);

  // Must be called when a channel of the operation ends at `end_ps`, now or later; `path` is its
  // critical path, or null.
  void OnChannelFinished(RunningIndex operation, int64_t end_ps, const CriticalPath* path);

  // --- Parts of the job (stream_restarts.cc) -----------------------------------------------------
  // Must be called when the speed of the host's GPU changes from `before` to `after`, as shares of
  // its full speed; 0 means halted. Its computation continues at the new speed.
  void ChangeSpeed(GpuIndex gpu, double before, double after);
  // Stops the part: its operations neither begin nor end any more. Returns the number of its
  // running calls, which are removed.
  uint64_t Halt(PartIndex part);
  // Does the same as Halt(), but channels of running calls continue until they lack data that will
  // not arrive.
  uint64_t Abort(PartIndex part);
  // Restarts a halted part now, at each rank's operation of that number (ProgramOrder::RestartAt).
  void RestartAt(PartIndex part, const std::vector<uint32_t>& first_of_rank);
  // Draws the skews anew after ranks have moved to other GPUs.
  void DrawSkews(uint64_t seed);

  // --- Running calls -----------------------------------------------------------------------------
  const std::vector<Running>& running() const { return running_; }  // includes free elements
  const std::vector<Pending>& pending() const { return pending_; }  // a heap, the earliest first
  Call CallOf(const Pending& pending) const { return calls_.CallOf(pending.rank, pending.number); }
  // Returns true if a GPU is halted in the middle of its computation.
  bool has_stopped_computation() const { return !stopped_.empty(); }
  // Returns true if ranks of the part are in a collective, or if their GPUs are halted in
  // computation.
  bool IsHeldUp(PartIndex part) const;
  // Returns the latest start of the part's running calls; 0 if none runs.
  int64_t LastBeginPs(PartIndex part) const;
  std::vector<GlobalRank> RanksInCollectives(PartIndex part) const;  // of the part, ascending
  int64_t ComputedUntilPs(PartIndex part) const { return order_.computed_until_ps(part); }
  // Returns the calls that begin because a replayed call ends, unless its GPU changes its speed
  // before. Precondition: it has not ended, and no trial is under way.
  std::vector<Pending> FollowersOf(RunningIndex operation);
  // Returns the last of the rank's operations that wait for this one, or this one if none does.
  uint32_t LastFollowerOf(const Call& call) const {
    return order_.LastFollowerOf(call.rank, call.index);
  }

  // --- For a CallReplay --------------------------------------------------------------------------
  // Ends the call at that time. Precondition: it runs, and its channels have not begun.
  void EndAt(RunningIndex operation, int64_t end_ps);
  // Sets the critical path of the channel that ends last, if paths are kept.
  void SetPath(RunningIndex operation, const CriticalPath& path) {
    running_[operation].path = path;
  }
  // Ends the run at that time, because all calls have been replayed.
  void StopAt(int64_t time_ps);

  // Begins a trial, in which calls begin and end without taking time and without being recorded in
  // the ledger. It is either kept or undone as a whole.
  void BeginTrial();
  // Begins the earliest pending call. Precondition: one is pending.
  Call BeginFirst();
  // Ends a call of the trial, and begins the calls that waited only for it.
  void EndInTrial(const Call& call, int64_t end_ps) { LetFollow(call, end_ps); }
  // Ends the trial; undoes it unless `keep` is true.
  void EndTrial(bool keep);

  // Runs these calls and all events of their channels before all other pending events; afterwards
  // the time is the same as before (FabricSimulatorImpl::RunAhead). Programs and ledger are not
  // affected. The calls must not touch other state. `on_end(i, path)` is called when calls[i] ends.
  struct AheadCall {
    Call call;
    int64_t begin_ps = 0;
  };
  using OnEndAhead = std::function<void(size_t call, const CriticalPath& path)>;
  void RunAhead(std::span<const AheadCall> calls, const OnEndAhead& on_end);
  bool is_ahead() const { return on_end_ahead_ != nullptr; }

 private:
  // Describes computation that a slow GPU does not end before the end of simulated time.
  struct Late {
    int64_t since_ps = 0;
    int64_t left_ps = 0;  // what remained then, at the GPU's full speed
  };

  static void HandleOperation(void* self, uint32_t target);
  void OnEvent(OperationEvent event);
  void OnBeginEvent(CallNumber number);
  void OnRunningEvent(RunningIndex operation);
  void ScheduleFirst();
  void Schedule(RunningIndex operation, int64_t time_ps);
  void MayBegin(const Call& call, int64_t begin_ps);
  int64_t WithSkewPs(GlobalRank rank, int64_t begin_ps) const {
    return skew_ps_.empty() ? begin_ps : SumPs(begin_ps, skew_ps_[rank]);
  }
  // Does the same as MayBegin() for a call after computation that began at `end_ps` and lasts until
  // `begin_ps` at the GPU's full speed.
  void MayBeginAfter(int64_t end_ps, const Call& call, int64_t begin_ps);
  void Stop(GlobalRank rank, CallNumber number, int64_t left_ps);
  void NoteLate(CallNumber number, int64_t since_ps, int64_t left_ps, int64_t slowed_ps);
  int64_t TakeLeftPs(const Pending& pending, double speed);
  Pending TakeFirst();
  void Begin(const Pending& pending);
  RunningIndex NewRunning(const Call& call, int64_t start_ps);
  void FreeRunning(RunningIndex operation);
  void Launch(RunningIndex operation);
  void End(RunningIndex operation);
  void EndAhead(RunningIndex operation);
  void LetFollow(const Call& call, int64_t end_ps);
  bool IsOfPart(const Running& running, PartIndex part) const {
    return !running.is_free() && calls_.PartOf(running.call.rank) == part;
  }
  bool IsOfPart(const Pending& pending, PartIndex part) const {
    return calls_.PartOf(pending.rank) == part;
  }
  void ForgetPendingOf(PartIndex part);

  FabricSimulatorImpl& engine_;
  const CallTable& calls_;
  CallLedger& ledger_;
  const CtaClock& clock_;
  CallHost& host_;
  CallReplay& replay_;
  ProgramOrder order_;
  std::vector<int64_t> skew_ps_;  // by rank; empty if there is none
  std::vector<Pending> pending_;  // heap
  // The pending calls of halted GPUs; `begin_ps` is the rest of their computation.
  std::vector<Pending> stopped_;
  std::unordered_map<CallNumber, Late> late_;  // pending calls by number
  Pending scheduled_{.begin_ps = -1};          // the call of `pending_` that was scheduled last
  std::vector<Running> running_;
  RunningIndex free_running_ = RunningIndex::kNone;
  uint32_t running_count_ = 0;  // calls that have begun and not ended, without those that run ahead
  const OnEndAhead* on_end_ahead_ = nullptr;  // while calls run ahead
  // These are the state at the start of the trial.
  std::vector<Pending> pending_before_;
  size_t stopped_before_ = 0;
  std::unordered_map<CallNumber, Late> late_before_;
};

}  // namespace railyard
