// SPDX-License-Identifier: GPL-2.0-only
// Closed-loop replay of a job's streams: every rank's streams run their operations in order, each
// when the one before it on its stream and the one before it of its communicator are done on that
// rank. Nothing is started at a recorded time; only recorded or stated compute gaps pass between
// operations.
//
// A call begins when it may (its kernel is launched then), its channels begin one launch latency
// later, and it ends on a rank when the last of that rank's channels is done. The runner knows
// neither networks nor episodes: a CallHost runs the channels, and a CallReplay may say when calls
// end that need not be simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "workloads/collectives/schedule.h"
#include "workloads/programs/program_order.h"

namespace railyard {

// Runs the channels of calls.
class CallHost {
 public:
  virtual ~CallHost() = default;
  // From a call's begin to that of its channels.
  virtual int64_t LaunchLatencyPs(const Call& call) = 0;
  // The call's channels begin, now. For each, StreamRunner::OnChannelFinished(operation) is called
  // once, perhaps before this returns.
  struct Launched {
    uint32_t channels = 0;
    std::shared_ptr<const CollectiveSchedule> schedule{};  // kept until the call has ended
  };
  virtual Launched Launch(uint32_t operation, const Call& call) = 0;
  virtual bool StandsStill(uint32_t gpu) const = 0;
  // How long the GPU takes now for what takes one at its own speed so long; it does not stand
  // still.
  virtual int64_t AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const = 0;
};

// Knows of calls that need not be simulated. `operation` is an index into StreamRunner::running().
class CallReplay {
 public:
  virtual ~CallReplay() = default;
  // Nothing runs, and the first call that is pending is due. True: some have been replayed, by a
  // trial that was kept.
  virtual bool ReplayFromRest() = 0;
  // The call has begun. True: it does not launch, for EndAt() was called for it.
  virtual bool OnBegin(uint32_t operation) = 0;
  // Its channels are to begin. True: they do not, for EndAt() was called for it.
  virtual bool OnLaunch(uint32_t operation) = 0;
  // It has ended; its index is free after this.
  virtual void OnEnd(uint32_t operation) = 0;
  // The last that ran has ended, and what waits for it has not begun.
  virtual void OnNothingRuns() = 0;
};

class StreamRunner {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A call that may begin. What is left of the computation before it is in its begin.
  struct Pending {
    int64_t begin_ps = 0;
    uint32_t number = 0;  // CallTable's
    uint32_t rank = 0;
    // For a heap with the earliest on top, in the order of events.
    bool operator<(const Pending& other) const {
      return begin_ps != other.begin_ps ? begin_ps > other.begin_ps : number > other.number;
    }
  };
  // A call that has begun and not ended.
  struct Running {
    Call call{kNone, 0};
    int64_t start_ps = 0;
    int64_t end_ps = 0;       // of its channels so far
    int64_t told_end_ps = 0;  // EndAt()'s; 0: it is simulated
    uint32_t ahead = kNone;   // its place among the calls that run ahead
    uint32_t next_free = kNone;
    uint16_t channels_left = 0;
    bool is_launched = false;
    std::shared_ptr<const CollectiveSchedule> schedule{};
    CriticalPath path{};  // of the channel that ended last so far

    bool is_free() const { return call.rank == kNone; }
  };

  // Registers with the engine as who handles event_order::kOperation. All references must outlive
  // this. `seed` draws the ranks' skews.
  StreamRunner(FabricSimulatorImpl& engine, const CallTable& calls, CallLedger& ledger,
               CallHost& host, CallReplay& replay, uint64_t seed);
  StreamRunner(const StreamRunner&) = delete;
  StreamRunner& operator=(const StreamRunner&) = delete;

  // Schedules the first operation of every stream. ns-3's simulator is stopped as the last call
  // ends.
  void Start();
  // A channel of the operation is done at `end_ps`, now or soon; how that came about, or null.
  void OnChannelFinished(uint32_t operation, int64_t end_ps, const CriticalPath* path);

  // --- Parts of the job (stream_restarts.cc) -----------------------------------------------------
  // The host's GPU will work at `after` instead of `before` its own speed, from now on; 0: it
  // stands still. What it computes goes on at that speed.
  void ChangeSpeed(uint32_t gpu, double before, double after);
  // Nothing of the part begins or ends any more; returns how many of its calls ran. They are gone.
  uint64_t Halt(uint32_t part);
  // The same, but what runs goes on in its channels until it lacks what will not come.
  uint64_t Abort(uint32_t part);
  // A halted part begins again, now, as ProgramOrder::RestartAt has it.
  void RestartAt(uint32_t part, const std::vector<uint32_t>& first_of_rank);
  // Ranks have moved to other GPUs: their skews are drawn anew.
  void DrawSkews(uint64_t seed);

  // --- What runs ---------------------------------------------------------------------------------
  const std::vector<Running>& running() const { return running_; }  // and indices that are free
  const std::vector<Pending>& pending() const { return pending_; }  // the earliest first
  Call CallOf(const Pending& pending) const { return calls_.CallOf(pending.rank, pending.number); }
  // Begun and not ended, besides those that run ahead.
  uint32_t running_count() const { return running_count_; }
  // Some GPU stands still in the middle of its computation.
  bool has_stopped_computation() const { return !stopped_.empty(); }
  // Ranks of the part are in a collective, or their GPUs stand still in a computation.
  bool IsHeldUp(uint32_t part) const;
  // When the running call of the part that began last did; 0: none runs.
  int64_t LastBeginPs(uint32_t part) const;
  std::vector<uint32_t> RanksInCollectives(uint32_t part) const;  // of the part, ascending
  int64_t ComputedUntilPs(uint32_t part) const { return order_.computed_until_ps(part); }
  // The last of the rank's operations that wait for this one; itself if none does.
  uint32_t LastFollowerOf(const Call& call) const {
    return order_.LastFollowerOf(call.rank, call.index);
  }

  // --- For a CallReplay --------------------------------------------------------------------------
  // The call, which runs and whose channels have not begun, ends then.
  void EndAt(uint32_t operation, int64_t end_ps);
  // The same where paths are kept: of the channel that ends last.
  void SetPath(uint32_t operation, const CriticalPath& path) { running_[operation].path = path; }
  // The run ends then, for all calls have been replayed.
  void StopAt(int64_t time_ps);

  // A trial: calls begin and end without taking time, and the ledger does not hear of them. Either
  // all of it is kept or all is taken back.
  void BeginTrial();
  // The earliest pending call begins. Precondition: one is pending.
  Call BeginFirst();
  // Calls that waited for this one alone may begin.
  void EndInTrial(const Call& call, int64_t end_ps) { LetFollow(call, end_ps); }
  void EndTrial(bool keep);

  // Runs these calls and all that their channels do before everything else that is pending; then it
  // is now again (FabricSimulatorImpl::RunAhead). Programs and ledger do not hear of them. What
  // they do must not touch what the rest does. `on_end(i, path)`: calls[i] ends, now.
  struct AheadCall {
    Call call;
    int64_t begin_ps = 0;
  };
  using OnEndAhead = std::function<void(size_t call, const CriticalPath& path)>;
  void RunAhead(std::span<const AheadCall> calls, const OnEndAhead& on_end);
  bool is_ahead() const { return on_end_ahead_ != nullptr; }

 private:
  // Marks the target of an event as the number of an operation that may begin; else it is the index
  // of one that runs.
  static constexpr uint32_t kBegins = CallTable::kCountMax;

  // Computation that a slow GPU does not end before the end of time.
  struct Late {
    int64_t since_ps = 0;
    int64_t left_ps = 0;  // what was left then at the GPU's own speed
  };

  static void HandleOperation(void* self, uint32_t target);
  void OnEvent(uint32_t target);
  void OnBeginEvent(uint32_t number);
  void OnRunningEvent(uint32_t operation);
  void ScheduleFirst();
  void Schedule(uint32_t operation, int64_t time_ps);
  void MayBegin(const Call& call, int64_t begin_ps);
  // The same of a call before which there is computation that began at `end_ps` and lasts until
  // `begin_ps` at the GPU's own speed.
  void MayBeginAfter(int64_t end_ps, const Call& call, int64_t begin_ps);
  void Stop(uint32_t rank, uint32_t number, int64_t left_ps);
  void NoteLate(uint32_t number, int64_t since_ps, int64_t left_ps, int64_t slowed_ps);
  int64_t TakeLeftPs(const Pending& pending, double speed);
  Pending TakeFirst();
  void Begin(const Pending& pending);
  uint32_t NewRunning(const Call& call, int64_t start_ps);
  void FreeRunning(uint32_t operation);
  void Launch(uint32_t operation);
  void End(uint32_t operation);
  void EndAhead(uint32_t operation);
  void LetFollow(const Call& call, int64_t end_ps);
  bool IsOfPart(const Running& running, uint32_t part) const {
    return !running.is_free() && calls_.PartOf(running.call.rank) == part;
  }
  bool IsOfPart(const Pending& pending, uint32_t part) const {
    return calls_.PartOf(pending.rank) == part;
  }
  void ForgetPendingOf(uint32_t part);

  FabricSimulatorImpl& engine_;
  const CallTable& calls_;
  CallLedger& ledger_;
  CallHost& host_;
  CallReplay& replay_;
  ProgramOrder order_;
  std::vector<int64_t> skew_ps_;  // by rank; empty: there is none
  std::vector<Pending> pending_;  // heap
  // Pending, of GPUs that stand still: what is left of their computation is their begin.
  std::vector<Pending> stopped_;
  std::unordered_map<uint32_t, Late> late_;  // by number, of those pending
  Pending scheduled_{.begin_ps = -1};        // the last of `pending_` put on the wheel
  std::vector<Running> running_;
  uint32_t free_running_ = kNone;
  uint32_t running_count_ = 0;
  const OnEndAhead* on_end_ahead_ = nullptr;  // while calls run ahead
  // As of the begin of the trial.
  std::vector<Pending> pending_before_;
  size_t stopped_before_ = 0;
  std::unordered_map<uint32_t, Late> late_before_;
};

}  // namespace railyard
